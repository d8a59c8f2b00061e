import { isApiTime } from './api-time.ts';
import { isObject, type JsonObject } from './lenient-json.ts';

/*
 * Strict readers for parsed JSON and YAML that the server imports and stores. They throw a MalformedFieldError for a
 * value of an unexpected type. `field` is the path of the value in the file, such as `affected[0].package.name`.
 */

/** A field of a record is malformed. The reason says what the value must be. */
export class MalformedFieldError extends Error {
  override readonly name = 'MalformedFieldError';
  readonly field: string;
  readonly reason: string;

  constructor(field: string, reason: string) {
    super(`${field}: ${reason}`);
    this.field = field;
    this.reason = reason;
  }
}

export const malformed = (field: string, reason: string): MalformedFieldError => new MalformedFieldError(field, reason);

/** A record of a file, or the reason why it was refused. */
export type DecodeResult<T> =
  | { readonly id: string; readonly record: T }
  | { readonly id: string; readonly field: string; readonly reason: string };

/** Decodes a record. `id` identifies the record in the result if it is refused. */
export function decodeRecord<T extends { readonly advisoryId: string } | { readonly id: string }>(
  id: string,
  decode: () => T,
): DecodeResult<T> {
  try {
    const record = decode();
    return { id: 'advisoryId' in record ? record.advisoryId : record.id, record };
  } catch (error) {
    return toDecodeFailure(id, error);
  }
}

/** Rethrows errors that are not about the content of the record. */
export function toDecodeFailure(id: string, error: unknown): { id: string; field: string; reason: string } {
  if (error instanceof MalformedFieldError) return { id, field: error.field, reason: error.reason };
  throw error;
}

export function requireObject(value: unknown, field: string): JsonObject {
  if (isObject(value)) return value;
  throw malformed(field, isAbsent(value) ? 'is missing' : 'must be a mapping');
}

/** Empty values count as absent. */
const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === '';

/** Returns an empty list for an absent value. */
export function listOf(value: unknown, field: string): readonly unknown[] {
  if (isAbsent(value)) return [];
  if (Array.isArray(value)) return value;
  throw malformed(field, 'must be a list');
}

/** Returns an empty string for an absent value. */
export function textOf(value: unknown, field: string): string {
  if (isAbsent(value)) return '';
  if (typeof value !== 'string') throw malformed(field, 'must be a string');
  // Half of a surrogate pair cannot be stored as UTF-8.
  if (!value.isWellFormed()) throw malformed(field, 'must be valid Unicode without half surrogate pairs');
  return value;
}

export function requireText(value: unknown, field: string): string {
  const text = textOf(value, field);
  if (text === '') throw malformed(field, 'is missing');
  return text;
}

export const textsOf = (value: unknown, field: string): string[] =>
  listOf(value, field).map((item, index) => requireText(item, `${field}[${index}]`));

/** The identifier of a record that may be malformed, for the report of its refusal. Empty if it has none. */
export const recordIdIn = (value: unknown, key: string): string => {
  const id = isObject(value) ? value[key] : undefined;
  return typeof id === 'string' ? id.slice(0, 200) : '';
};

const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Reads a time of RFC 3339. Returns it in the form of the API. */
export function requireTime(value: unknown, field: string): string {
  const text = requireText(value, field);
  const ms = TIME.test(text) && isDate(text.slice(0, 10)) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  if (!isApiTime(ms)) throw malformed(field, 'must be a time such as 2024-05-07T19:43:55Z');
  return new Date(ms).toISOString();
}

/** `Date.parse` alone accepts the 30th of February and returns a day in March. */
function isDate(date: string): boolean {
  const ms = Date.parse(date);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date);
}

/** Leaves out the fields that are absent or empty lists. */
export const omitEmpty = <T extends object>(fields: T): T =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => !isAbsent(value) && !(Array.isArray(value) && value.length === 0)),
  ) as T;
