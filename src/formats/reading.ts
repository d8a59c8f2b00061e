/** Thrown while a record is read: which part of it is wrong, and what would be right. */
export class DamagedError extends Error {
  override readonly name = 'DamagedError';
  readonly field: string;
  readonly reason: string;

  constructor(field: string, reason: string) {
    super(`${field}: ${reason}`);
    this.field = field;
    this.reason = reason;
  }
}

export const damaged = (field: string, reason: string): DamagedError => new DamagedError(field, reason);

/** A record of a file, or why it is none. */
export type Decoded<T> =
  | { readonly id: string; readonly record: T }
  | { readonly id: string; readonly field: string; readonly reason: string };

export type Fields = Readonly<Record<string, unknown>>;

/** Runs what reads one record; what is wrong with it becomes its refusal. */
export function attempt<T extends { readonly advisoryId: string } | { readonly id: string }>(
  id: string,
  read: () => T,
): Decoded<T> {
  try {
    const record = read();
    return { id: 'advisoryId' in record ? record.advisoryId : record.id, record };
  } catch (error) {
    return refusal(id, error);
  }
}

/** What was found damaged; any other error is ours and goes on its way. */
export function refusal(id: string, error: unknown): { id: string; field: string; reason: string } {
  if (error instanceof DamagedError) return { id, field: error.field, reason: error.reason };
  throw error;
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function fieldsOf(value: unknown, field: string): Fields {
  if (isFields(value)) return value;
  throw damaged(field, isAbsent(value) ? 'is missing' : 'must be a mapping');
}

/** What is left empty is not there. */
const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === '';

export function listOf(value: unknown, field: string): readonly unknown[] {
  if (isAbsent(value)) return [];
  if (Array.isArray(value)) return value;
  throw damaged(field, 'must be a list');
}

/** A text; empty when there is none. */
export function textOf(value: unknown, field: string): string {
  if (isAbsent(value)) return '';
  if (typeof value !== 'string') throw damaged(field, 'must be a text');
  // Half a surrogate pair cannot be stored as UTF-8.
  if (!value.isWellFormed()) throw damaged(field, 'must be a text of whole characters');
  return value;
}

export function givenText(value: unknown, field: string): string {
  const text = textOf(value, field);
  if (text === '') throw damaged(field, 'is missing');
  return text;
}

export const textsOf = (value: unknown, field: string): string[] =>
  listOf(value, field).map((item, at) => givenText(item, `${field}[${at}]`));

/** A record's own name for refusals, as far as it has one. */
export const nameIn = (value: unknown, key: string): string => {
  const name = isFields(value) ? value[key] : undefined;
  return typeof name === 'string' ? name.slice(0, 200) : '';
};

const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** A time of RFC 3339, as the API writes it. */
export function timeOf(value: unknown, field: string): string {
  const text = givenText(value, field);
  const ms = TIME.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  if (!isTime(ms)) throw damaged(field, 'must be a time such as 2024-05-07T19:43:55Z');
  return new Date(ms).toISOString();
}

/** `Date` takes the 30th of February for a day in March. */
function isDay(date: string): boolean {
  const ms = Date.parse(date);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date);
}

const EARLIEST = Date.parse('0001-01-01T00:00:00Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/** Whether these milliseconds are a time; beyond these years, the contract knows none. */
export const isTime = (ms: number): boolean => ms >= EARLIEST && ms <= LATEST;

/** Only those fields that say something. */
export const filled = <T extends object>(fields: T): T =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => !isAbsent(value) && !(Array.isArray(value) && value.length === 0)),
  ) as T;
