import type { DescEnum, DescField, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { commentOn, commentOnMember } from '../../contract/comments.ts';
import { isInputOnly, isOutputOnly, isRequired } from '../../contract/field-behavior.ts';
import { capabilityOptions } from '../../contract/options.ts';
import type { Schema } from './types.ts';

/** The difference between a request body and its message. */
export interface BodyShape {
  /** Fields that are set by the path. */
  readonly without: ReadonlySet<string>;
  /** A partial update: no field is required. */
  readonly partial: boolean;
}

export interface Schemas {
  /** Every message and enum that was referenced so far, by component name. */
  readonly components: Readonly<Record<string, Schema>>;
  ofField(field: DescField): Schema;
  ofMessage(message: DescMessage): Schema;
  ofBody(message: DescMessage, shape: BodyShape): Schema;
}

const string: Schema = { type: 'string' };
const int32: Schema = { type: 'integer', format: 'int32' };
const uint32: Schema = { type: 'integer', format: 'uint32', minimum: 0 };
/** JSON numbers lose precision above 2^53, so the protobuf JSON mapping writes 64-bit integers as strings. */
const int64: Schema = { type: 'string', format: 'int64', pattern: '^-?[0-9]+$' };
const uint64: Schema = { type: 'string', format: 'uint64', pattern: '^[0-9]+$' };

const scalars: Readonly<Record<ScalarType, Schema>> = {
  [ScalarType.STRING]: string,
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.BYTES]: { type: 'string', contentEncoding: 'base64' },
  [ScalarType.DOUBLE]: { type: 'number', format: 'double' },
  [ScalarType.FLOAT]: { type: 'number', format: 'float' },
  [ScalarType.INT32]: int32,
  [ScalarType.SINT32]: int32,
  [ScalarType.SFIXED32]: int32,
  [ScalarType.UINT32]: uint32,
  [ScalarType.FIXED32]: uint32,
  [ScalarType.INT64]: int64,
  [ScalarType.SINT64]: int64,
  [ScalarType.SFIXED64]: int64,
  [ScalarType.UINT64]: uint64,
  [ScalarType.FIXED64]: uint64,
};

/** Messages with a special JSON form. */
const wellKnown: Readonly<Record<string, Schema>> = {
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^-?[0-9]+(\\.[0-9]{1,9})?s$' },
  'google.protobuf.FieldMask': string,
  'google.protobuf.Empty': { type: 'object' },
  // Any JSON value.
  'google.protobuf.Value': {},
};

/** Whether a message is a single string in JSON, so that it can be a query parameter. */
export const isPlainValue = (message: DescMessage): boolean => wellKnown[message.typeName]?.type === 'string';

export const componentName = (desc: DescMessage | DescEnum): string =>
  desc.typeName.replace(/^chainguard\.(platform\.)?/, '');

export const refTo = (component: string): Schema => ({ $ref: `#/components/schemas/${component}` });

export function createSchemas(): Schemas {
  const components: Record<string, Schema> = {};

  function define(desc: DescMessage | DescEnum, build: () => Schema): Schema {
    const component = componentName(desc);
    if (components[component] === undefined) {
      components[component] = {}; // set before it is built, because a message may contain itself
      components[component] = build();
    }
    return refTo(component);
  }

  function ofMessage(message: DescMessage): Schema {
    const special = wellKnown[message.typeName];
    if (special !== undefined) return special;
    if (message.typeName.startsWith('google.protobuf.')) {
      throw new Error(`openapi: ${message.typeName} has a special JSON form that is not supported`);
    }
    return define(message, () => ({
      ...described(messageDescription(message)),
      ...object(
        message.fields,
        // An input-only field is never in a response. `ofBody` adds it to the required fields of request bodies.
        message.fields.filter((field) => isRequired(field) && !isInputOnly(field)),
      ),
    }));
  }

  function ofBody(message: DescMessage, { without, partial }: BodyShape): Schema {
    const fields = message.fields.filter((field) => !without.has(field.name));
    if (partial) return { ...described(messageDescription(message)), ...object(fields, []) };
    if (without.size > 0) return object(fields, fields.filter(isRequired));
    const inputOnly = fields.filter((field) => isRequired(field) && isInputOnly(field));
    if (inputOnly.length === 0) return ofMessage(message);
    return { allOf: [ofMessage(message)], required: inputOnly.map((field) => field.jsonName) };
  }

  const object = (fields: readonly DescField[], required: readonly DescField[]): Schema => ({
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.jsonName, property(field)])),
    ...(required.length > 0 && { required: required.map((field) => field.jsonName) }),
  });

  const property = (field: DescField): Schema => ({
    ...ofField(field),
    ...described(commentOnMember(field)),
    ...(isOutputOnly(field) && { readOnly: true }),
    ...(isInputOnly(field) && { writeOnly: true }),
    ...(field.deprecated && { deprecated: true }),
  });

  function ofField(field: DescField): Schema {
    if (field.fieldKind === 'list') return { type: 'array', items: ofValue(field) };
    if (field.fieldKind !== 'map') return ofValue(field);
    const key = scalars[field.mapKey];
    return {
      type: 'object',
      additionalProperties: ofValue(field),
      ...(key.pattern !== undefined && { propertyNames: { pattern: key.pattern } }),
    };
  }

  function ofValue({ message, enum: enumeration, scalar }: DescField): Schema {
    if (message !== undefined) return ofMessage(message);
    if (enumeration !== undefined) return define(enumeration, () => enumSchema(enumeration));
    return scalars[scalar ?? ScalarType.STRING];
  }

  return { components, ofField, ofMessage, ofBody };
}

function enumSchema(enumeration: DescEnum): Schema {
  // The dotted name of a capability says more than its comment. Values of other enums have no such option.
  const texts = enumeration.values.map((value) => capabilityOptions(value).name || commentOnMember(value));
  return {
    type: 'string',
    ...described(commentOn(enumeration)),
    enum: enumeration.values.map((value) => value.name),
    ...(texts.some((text) => text !== '') && { 'x-enum-descriptions': texts }),
  };
}

function messageDescription(message: DescMessage): string {
  const choices = message.oneofs
    .filter((oneof) => oneof.fields.length > 1)
    .map((oneof) => `Has at most one of ${oneof.fields.map((field) => `\`${field.jsonName}\``).join(', ')}.`);
  return [commentOn(message), ...choices].filter((text) => text !== '').join('\n\n');
}

const described = (description: string): Schema => (description === '' ? {} : { description });
