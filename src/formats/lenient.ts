import { isTime } from './reading.ts';

/*
 * For what somebody else wrote and we merely show: a part that is not as expected is left out, and the rest counts.
 * What is taken in and kept is read strictly instead (reading.ts).
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
  return isTime(ms) ? ms : undefined;
}
