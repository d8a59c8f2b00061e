import { isApiTime } from './api-time.ts';

/*
 * Lenient readers for parsed JSON that others wrote and the server only displays. They leave out a part that has an
 * unexpected type and read the rest. What the server imports and stores is read strictly instead (strict-json.ts).
 */

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const objectIn = (value: unknown): JsonObject => (isObject(value) ? value : {});

export const textIn = (value: unknown): string => (typeof value === 'string' ? value.toWellFormed() : '');

export const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.flatMap((item) => (typeof item === 'string' ? item.toWellFormed() : [])) : [];

export const objectsIn = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);

export const textMapIn = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(objectIn(value)).flatMap(([key, text]) =>
      typeof text === 'string' ? [[key.toWellFormed(), text.toWellFormed()]] : [],
    ),
  );

/** A time in milliseconds. */
export function timeIn(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return isApiTime(ms) ? ms : undefined;
}
