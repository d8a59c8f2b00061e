import type { DescEnum, DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { ScalarType, toJson } from '@bufbuild/protobuf';
import {
  DurationSchema,
  FeatureSet_FieldPresence,
  FieldMaskSchema,
  TimestampSchema,
  type Value,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { isInputOnly } from '../field-behavior.ts';
import type { Fields } from './fields.ts';
import { readField } from './fields.ts';
import { formatDuration, formatFieldMask, formatTimestamp } from './well-known.ts';

type Json = Record<string, unknown>;
/** Converts the value that protobuf-es has for a field or message to the value for JSON.stringify. */
type Convert = (value: never) => unknown;
/** Adds a field to the JSON of its message, unless the field is omitted. */
export type AddField = (message: Fields, json: Json) => void;

const converters = new WeakMap<DescMessage, Convert>();

/** The JSON text of a message. The decisions that depend only on its type are made once per type. */
export const encodeJson = (desc: DescMessage, message: Message): string =>
  JSON.stringify(messageConverter(desc)(message as never));

function messageConverter(desc: DescMessage): Convert {
  const existing = converters.get(desc) ?? wellKnown.get(desc.typeName);
  if (existing !== undefined) return existing;
  if (desc.typeName.startsWith('google.protobuf.') && desc.fields.length > 0) {
    throw new Error(`REST does not write ${desc.typeName}`);
  }
  const addFields: AddField[] = [];
  const convert: Convert = (message: Fields) => {
    const json: Json = {};
    for (const addField of addFields) addField(message, json);
    return json;
  };
  // Stored before its fields are compiled, because a message type may contain itself.
  converters.set(desc, convert);
  addFields.push(...desc.fields.filter((field) => !isInputOnly(field)).map(compileField));
  return convert;
}

export function compileField(field: DescField): AddField {
  const { jsonName: key, localName } = field;
  const convert = elementConverter(field) as (value: unknown) => unknown;
  if (field.fieldKind === 'list') {
    const isAlwaysPresent = isPageItems(field);
    return (message, json) => {
      const list = message[localName] as readonly unknown[];
      if (list.length > 0 || isAlwaysPresent) json[key] = convert === unchanged ? list : list.map(convert);
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
  // Numbers and booleans are always present, so that clients need not know their defaults.
  const isOmitted = omissionRule(field);
  return (message, json) => {
    const value = message[localName];
    if (!isOmitted(value)) json[key] = convert(value);
  };
}

function omissionRule({ fieldKind, scalar }: DescField): (value: unknown) => boolean {
  if (fieldKind === 'enum') return (value) => value === 0;
  if (scalar === ScalarType.STRING) return (value) => value === '';
  if (scalar === ScalarType.BYTES) return (value) => (value as Uint8Array).length === 0;
  return () => false;
}

/** Whether a field contains the items of a page, in a List response. It is present even when it is empty. */
export const isPageItems = ({ fieldKind, parent, message }: DescField): boolean =>
  fieldKind === 'list' &&
  message !== undefined &&
  parent?.fields.some(({ name }) => name === 'next_page_token') === true;

const unchanged = (value: unknown): unknown => value;

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
      return unchanged;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      // A JSON number has too few digits for them in most languages.
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
  // Any JSON value. Only policy results have such fields, so the generic encoder of the library will do.
  [ValueSchema.typeName, (value: Value) => toJson(ValueSchema, value)],
]);
