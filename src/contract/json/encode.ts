import type { DescEnum, DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { DurationSchema, FeatureSet_FieldPresence, FieldMaskSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { isInputOnly } from '../field-behavior.ts';
import { cachedJson } from '../message-cache.ts';
import type { Fields } from './fields.ts';
import { readField } from './fields.ts';
import { formatDuration, formatFieldMask, formatTimestamp } from './well-known.ts';

type Json = Record<string, unknown>;
/** Turns what protobuf-es keeps for a value or message into what JSON.stringify writes as we want it. */
type Convert = (value: never) => unknown;
/** Adds a field to the JSON of its message, unless it is left out. */
type AddField = (message: Fields, json: Json) => void;

const converters = new WeakMap<DescMessage, Convert>();

/** The JSON text of a message. What can be decided from its type is decided once. */
export const encodeJson = (desc: DescMessage, message: Message): string =>
  JSON.stringify(messageConverter(desc)(message as never));

/**
 * The same as octets: its UTF-8 with one character for each byte, so that it is written to a socket by mere copying. Rows of
 * a page are known from pages before, and need only be joined.
 */
export function encodeJsonLatin1(desc: DescMessage, message: Message): string {
  const list = envelopeListOf(desc);
  return list ? pageLatin1(desc, list, message as Fields) : cachedJson(desc, message, jsonLatin1);
}

const jsonLatin1 = (desc: DescMessage, message: Message): string => toLatin1(encodeJson(desc, message));

/** Most texts are ASCII and are what they were. */
export const toLatin1 = (text: string): string =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');

/** The envelope, with the rows in the place of its empty list. */
function pageLatin1(desc: DescMessage, { jsonName, localName, message: row }: EnvelopeList, page: Fields): string {
  const envelope = jsonLatin1(desc, { ...page, [localName]: [] } as never);
  const place = `"${jsonName}":[`;
  // A quote inside of a text would have a backslash before it.
  const at = envelope.indexOf(`${place}]`) + place.length;
  const rows = (page[localName] as readonly Message[]).map((message) => cachedJson(row, message, jsonLatin1));
  return envelope.slice(0, at) + rows.join(',') + envelope.slice(at);
}

function messageConverter(desc: DescMessage): Convert {
  const known = converters.get(desc) ?? wellKnown.get(desc.typeName);
  if (known !== undefined) return known;
  if (desc.typeName.startsWith('google.protobuf.') && desc.fields.length > 0) {
    throw new Error(`REST does not write ${desc.typeName}`);
  }
  const addFields: AddField[] = [];
  const convert: Convert = (message: Fields) => {
    const json: Json = {};
    for (const addField of addFields) addField(message, json);
    return json;
  };
  // Known before its fields are compiled, since a message type may hold itself.
  converters.set(desc, convert);
  addFields.push(...desc.fields.filter((field) => !isInputOnly(field)).map(compileField));
  return convert;
}

function compileField(field: DescField): AddField {
  const { jsonName: key, localName } = field;
  const convert = elementConverter(field) as (value: unknown) => unknown;
  if (field.fieldKind === 'list') {
    const isKept = isEnvelopeList(field);
    return (message, json) => {
      const list = message[localName] as readonly unknown[];
      if (list.length > 0 || isKept) json[key] = convert === identity ? list : list.map(convert);
    };
  }
  if (field.fieldKind === 'map') {
    return (message, json) => {
      const entries = Object.entries(message[localName] as Json).map(([name, value]) => [name, convert(value)]);
      if (entries.length > 0) json[key] = Object.fromEntries(entries);
    };
  }
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) {
    return (message, json) => {
      const value = readField(message, field);
      if (value !== undefined) json[key] = convert(value);
    };
  }
  // Numbers and booleans are always there, so that a client need not know their defaults.
  const isOmitted = omission(field);
  return (message, json) => {
    const value = message[localName];
    if (!isOmitted(value)) json[key] = convert(value);
  };
}

function omission({ fieldKind, scalar }: DescField): (value: unknown) => boolean {
  if (fieldKind === 'enum') return (value) => value === 0;
  if (scalar === ScalarType.STRING) return (value) => value === '';
  if (scalar === ScalarType.BYTES) return (value) => (value as Uint8Array).length === 0;
  return () => false;
}

/** The list of a List response is there even when it is empty. */
const isEnvelopeList = ({ parent, message }: DescField): boolean =>
  message !== undefined && parent?.fields.some(({ name }) => name === 'next_page_token') === true;

type EnvelopeList = DescField & { readonly fieldKind: 'list'; readonly message: DescMessage };

/** Null for a message that is no page. */
const envelopeLists = new WeakMap<DescMessage, EnvelopeList | null>();

function envelopeListOf(desc: DescMessage): EnvelopeList | null {
  const known = envelopeLists.get(desc);
  if (known !== undefined) return known;
  const found = desc.fields.find((field) => field.fieldKind === 'list' && isEnvelopeList(field)) ?? null;
  envelopeLists.set(desc, found as EnvelopeList | null);
  return found as EnvelopeList | null;
}

const identity = (value: unknown): unknown => value;

function elementConverter({ message, enum: values, scalar }: DescField): Convert {
  if (message !== undefined) return messageConverter(message);
  if (values !== undefined) return enumConverter(values);
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BOOL:
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return identity;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      // More digits than a JSON number holds in most languages.
      return String;
    case ScalarType.BYTES:
      return (value: Uint8Array) => Buffer.from(value).toString('base64');
    default:
      throw new Error(`REST does not write fields of scalar type ${scalar}`);
  }
}

function enumConverter({ values }: DescEnum): Convert {
  const names = new Map(values.map(({ number, name }) => [number, name]));
  return (value: number) => names.get(value) ?? value;
}

const wellKnown = new Map<string, Convert>([
  [TimestampSchema.typeName, formatTimestamp],
  [DurationSchema.typeName, formatDuration],
  [FieldMaskSchema.typeName, formatFieldMask],
]);
