import type { DescField, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { misused } from '../exit-codes.ts';
import { readInput } from '../input.ts';

/** Reads a whole body from a file, or from standard input for `-`. */
export function readBody(path: string): JsonObject {
  const text = readInput(path === '-' ? path : `@${path}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw misused(`--file ${path} is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(value as JsonValue)) throw misused(`--file ${path} must hold one JSON object`);
  return value as JsonObject;
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A body may spell a field as the contract does or as JSON does; two spellings at once would be refused. */
const keyIn = (body: JsonObject, { name, jsonName }: DescField): string =>
  Object.hasOwn(body, name) ? name : jsonName;

export function setAt(body: JsonObject, [field, ...rest]: readonly DescField[], value: JsonValue): void {
  if (field === undefined) return;
  const key = keyIn(body, field);
  if (rest.length === 0) {
    body[key] = value;
    return;
  }
  const inner = body[key];
  const deeper = isObject(inner) ? inner : {};
  body[key] = deeper;
  setAt(deeper, rest, value);
}

export function valueAt(body: JsonObject, [field, ...rest]: readonly DescField[]): JsonValue | undefined {
  if (field === undefined) return body;
  const value = body[keyIn(body, field)];
  if (rest.length === 0) return value;
  return isObject(value) ? valueAt(value, rest) : undefined;
}
