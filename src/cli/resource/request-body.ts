import type { DescField, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { usageError } from '../exit-codes.ts';
import { readOptionValue } from '../option-value.ts';

/** Reads a request body from a file, or from standard input for `-`. */
export function readBodyFile(path: string): JsonObject {
  const text = readOptionValue(path === '-' ? path : `@${path}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usageError(`--file ${path} is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(value as JsonValue)) throw usageError(`--file ${path} must contain a JSON object`);
  return value as JsonObject;
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The key of a field in a body: the proto name if the body has it, else the JSON name. The server refuses both at
 * once.
 */
const keyIn = (body: JsonObject, { name, jsonName }: DescField): string =>
  Object.hasOwn(body, name) ? name : jsonName;

export function setField(body: JsonObject, [field, ...rest]: readonly DescField[], value: JsonValue): void {
  if (field === undefined) return;
  const key = keyIn(body, field);
  if (rest.length === 0) {
    body[key] = value;
    return;
  }
  const existing = body[key];
  const nested = isObject(existing) ? existing : {};
  body[key] = nested;
  setField(nested, rest, value);
}

export function getField(body: JsonObject, [field, ...rest]: readonly DescField[]): JsonValue | undefined {
  if (field === undefined) return body;
  const value = body[keyIn(body, field)];
  if (rest.length === 0) return value;
  return isObject(value) ? getField(value, rest) : undefined;
}
