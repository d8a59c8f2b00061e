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
import { fieldOptions } from '../options.ts';
import type { Fields } from './fields.ts';
import { readField } from './fields.ts';
import { formatDuration, formatFieldMask, formatTimestamp } from './well-known.ts';

type Json = Record<string, unknown>;
/** Converts the value that protobuf-es has for a field or message to the value for JSON.stringify. */
type Convert = (value: never) => unknown;
/** Adds a field to the JSON of its message, unless the field is omitted. */
export type AddField = (message: Fields, json: Json) => void;

/**
 * How a message is written. In all forms, fields with presence that are not set, such as those of a oneof, are omitted.
 * - `v2`: names such as `roleUid`; unset fields are omitted, except for numbers, booleans and the items of a page.
 * - `v1`: the same names; unset fields are written as grpc-gateway does: the zero value, `[]`, `{}`, null for a message.
 * - `event`: the names of the contract, such as `role_uid`; unset fields as in v2.
 */
export type JsonForm = ResponseForm | 'event';
export type ResponseForm = 'v2' | 'v1';

const newCache = () => new WeakMap<DescMessage, Convert>();
const converters: Readonly<Record<JsonForm, WeakMap<DescMessage, Convert>>> = {
  v2: newCache(),
  v1: newCache(),
  event: newCache(),
};

/** The JSON text of a message. The decisions that depend only on its type are made once per type. */
export const encodeJson = (desc: DescMessage, message: Message, form: JsonForm = 'v2'): string =>
  JSON.stringify(messageConverter(desc, form)(message as never));

function messageConverter(desc: DescMessage, form: JsonForm): Convert {
  const existing = converters[form].get(desc) ?? wellKnown.get(desc.typeName);
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
  converters[form].set(desc, convert);
  const written = desc.fields.filter((field) => !isInputOnly(field));
  addFields.push(...written.map((field) => compileField(field, form)));
  return convert;
}

export function compileField(field: DescField, form: JsonForm): AddField {
  const { localName } = field;
  const key = form === 'event' ? field.name : field.jsonName;
  const convert = elementConverter(field, form) as (value: unknown) => unknown;
  const isPrinted = form === 'v1';
  if (field.fieldKind === 'list') {
    const isAlwaysPresent = isPrinted || isPageItems(field);
    return (message, json) => {
      const list = message[localName] as readonly unknown[];
      if (list.length > 0 || isAlwaysPresent) json[key] = convert === unchanged ? list : list.map(convert);
    };
  }
  if (field.fieldKind === 'map') {
    return (message, json) => {
      const entries = Object.entries(message[localName] as Json).map(([name, value]) => [name, convert(value)]);
      if (entries.length > 0 || isPrinted) json[key] = Object.fromEntries(entries);
    };
  }
  if (isPrinted && isPlainMessage(field)) {
    return (message, json) => {
      const value = message[localName];
      json[key] = value === undefined ? null : convert(value);
    };
  }
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) {
    return (message, json) => {
      const value = readField(message, field);
      if (value !== undefined) json[key] = convert(value);
    };
  }
  // Numbers and booleans are always present, so that clients need not know their defaults.
  const isOmitted = isPrinted ? isUndefined : omissionRule(field);
  return (message, json) => {
    const value = message[localName];
    if (!isOmitted(value)) json[key] = convert(value);
  };
}

function omissionRule(field: DescField): (value: unknown) => boolean {
  const { fieldKind, scalar } = field;
  if (fieldOptions(field).alwaysPresent) return () => false;
  if (fieldKind === 'enum') return (value) => value === 0;
  if (scalar === ScalarType.STRING) return (value) => value === '';
  if (scalar === ScalarType.BYTES) return (value) => (value as Uint8Array).length === 0;
  return () => false;
}

/** A field may be undefined in a copy of a message. */
const isUndefined = (value: unknown): boolean => value === undefined;

/** Whether a field is a single message that is neither in a oneof nor marked `optional`. */
const isPlainMessage = ({ fieldKind, oneof, proto }: DescField): boolean =>
  fieldKind === 'message' && !oneof && !proto.proto3Optional;

/** Whether a field contains the items of a page, in a List response. It is present even when it is empty. */
export const isPageItems = ({ fieldKind, parent, message }: DescField): boolean =>
  fieldKind === 'list' &&
  message !== undefined &&
  parent?.fields.some(({ name }) => name === 'next_page_token') === true;

const unchanged = (value: unknown): unknown => value;

function elementConverter({ message, enum: values, scalar }: DescField, form: JsonForm): Convert {
  if (message !== undefined) return messageConverter(message, form);
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
