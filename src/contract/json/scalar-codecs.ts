import type { DescEnum, DescField, DescMessage } from '@bufbuild/protobuf';
import { create, ScalarType } from '@bufbuild/protobuf';
import { DurationSchema, FieldMaskSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { parseDuration, parseFieldMask, parseTimestamp } from './well-known.ts';

/**
 * Reads a value that has no fields of its own, from parsed JSON and from the text of a path or query. Both functions
 * return undefined for an invalid value.
 */
export interface ScalarCodec {
  /** Completes the sentence "must be …". */
  readonly expected: string;
  readonly json: (value: unknown) => unknown;
  readonly text: (text: string) => unknown;
}

/**
 * The codec of a field, of the elements of a list or of the values of a map. Undefined for a message that has fields.
 */
export function codecOf(field: DescField): ScalarCodec | undefined {
  if (field.message !== undefined) return wellKnownCodec(field.message);
  if (field.enum !== undefined) return enumCodec(field.enum);
  return scalarCodec(field.scalar);
}

export function scalarCodec(type: ScalarType | undefined): ScalarCodec {
  const codec = type === undefined ? undefined : scalars.get(type);
  if (codec === undefined) throw new Error(`REST does not read fields of scalar type ${type}`);
  return codec;
}

/** The codec of a value that is a string in JSON too. */
const stringCodec = (expected: string, text: (text: string) => unknown): ScalarCodec => ({
  expected,
  text,
  json: (value) => (typeof value === 'string' ? text(value) : undefined),
});

/** No leading zeros, so that every number has one spelling, which matters for map keys. */
const DECIMAL = /^(?:0|-?[1-9]\d{0,19})$/;

function integer32(min: number, max: number): ScalarCodec {
  const check = (value: number) => (Number.isInteger(value) && value >= min && value <= max ? value + 0 : undefined);
  const text = (value: string) => (DECIMAL.test(value) ? check(Number(value)) : undefined);
  return {
    expected: `a whole number from ${min} to ${max}`,
    text,
    json: (value) => (typeof value === 'number' ? check(value) : typeof value === 'string' ? text(value) : undefined),
  };
}

function integer64(min: bigint, max: bigint): ScalarCodec {
  const check = (value: bigint) => (value >= min && value <= max ? value : undefined);
  const text = (value: string) => (DECIMAL.test(value) ? check(BigInt(value)) : undefined);
  return {
    expected: `a whole number from ${min} to ${max}, as a string where it has more than 15 digits`,
    text,
    // The parser has already rounded a JSON number that is larger.
    json: (value) =>
      Number.isSafeInteger(value)
        ? check(BigInt(value as number))
        : typeof value === 'string'
          ? text(value)
          : undefined,
  };
}

const int32 = integer32(-(2 ** 31), 2 ** 31 - 1);
const uint32 = integer32(0, 2 ** 32 - 1);
const int64 = integer64(-(2n ** 63n), 2n ** 63n - 1n);
const uint64 = integer64(0n, 2n ** 64n - 1n);

// PostgreSQL cannot store NUL in text, and half a surrogate pair has no UTF-8 form.
const string = stringCodec('a string of valid Unicode without NUL characters', (text) =>
  text.includes('\0') || !text.isWellFormed() ? undefined : text,
);

const bool: ScalarCodec = {
  expected: 'true or false',
  text: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  json: (value) => (typeof value === 'boolean' ? value : undefined),
};

const BASE64 = /^[\w+/-]*(?:==?)?$/;

const bytes = stringCodec('base64, standard or URL-safe', (text) => {
  if (!BASE64.test(text)) return undefined;
  const hasValidLength = text.endsWith('=') ? text.length % 4 === 0 : text.length % 4 !== 1;
  return hasValidLength ? new Uint8Array(Buffer.from(text, 'base64')) : undefined;
});

const scalars = new Map<ScalarType, ScalarCodec>([
  [ScalarType.STRING, string],
  [ScalarType.BOOL, bool],
  [ScalarType.BYTES, bytes],
  [ScalarType.INT32, int32],
  [ScalarType.SINT32, int32],
  [ScalarType.SFIXED32, int32],
  [ScalarType.UINT32, uint32],
  [ScalarType.FIXED32, uint32],
  [ScalarType.INT64, int64],
  [ScalarType.SINT64, int64],
  [ScalarType.SFIXED64, int64],
  [ScalarType.UINT64, uint64],
  [ScalarType.FIXED64, uint64],
]);

const enums = new WeakMap<DescEnum, ScalarCodec>();

function enumCodec(desc: DescEnum): ScalarCodec {
  const codec = enums.get(desc) ?? createEnumCodec(desc);
  enums.set(desc, codec);
  return codec;
}

function createEnumCodec({ name, values }: DescEnum): ScalarCodec {
  const numbers = new Map<unknown, number>();
  for (const value of values) {
    for (const spelling of [value.name, value.number, String(value.number)]) numbers.set(spelling, value.number);
  }
  const names = values.filter(({ number }) => number !== 0).map((value) => value.name);
  const read = (value: unknown) => numbers.get(value);
  return {
    expected: names.length > 16 ? `the name of a ${name}, such as ${names[0]}` : `one of ${names.join(', ')}`,
    text: read,
    json: read,
  };
}

const timestamp = stringCodec('an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z', (text) => {
  const parsed = parseTimestamp(text);
  return parsed && create(TimestampSchema, parsed);
});

const wellKnown = new Map<string, ScalarCodec>([
  [
    TimestampSchema.typeName,
    // In a query, the plus sign of an unescaped "+02:00" was decoded to a space.
    { ...timestamp, text: (text) => timestamp.text(text.replace(/ (?=\d\d:\d\d$)/, '+')) },
  ],
  [
    DurationSchema.typeName,
    stringCodec('a number of seconds followed by s, such as 3600s or 3.5s', (text) => {
      const parsed = parseDuration(text);
      return parsed && create(DurationSchema, parsed);
    }),
  ],
  [
    FieldMaskSchema.typeName,
    stringCodec('field paths separated by commas, such as name,description', (text) => {
      const parsed = parseFieldMask(text);
      return parsed && create(FieldMaskSchema, parsed);
    }),
  ],
]);

function wellKnownCodec({ typeName, fields }: DescMessage): ScalarCodec | undefined {
  const codec = wellKnown.get(typeName);
  // Any, Struct, Value and the wrappers have special JSON forms. No request has them.
  if (codec === undefined && typeName.startsWith('google.protobuf.') && fields.length > 0) {
    throw new Error(`REST does not read fields of type ${typeName}`);
  }
  return codec;
}
