import type { DescEnumValue, DescField, DescMessage, DescMethod, Message, MessageShape } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Empty, EmptySchema } from '@bufbuild/protobuf/wkt';
import {
  type CapabilityOptionValues,
  CapabilityOptionValuesSchema,
  type FieldOptionValues,
  FieldOptionValuesSchema,
  type MethodOptionValues,
  MethodOptionValuesSchema,
} from './gen/wharfinger/options/v1/option_values_pb.js';

// The custom options of the contract. option_values.proto says why they are not read as extensions.

export const methodOptions = ({ proto }: DescMethod): MethodOptionValues =>
  decodeOptions(proto.options, MethodOptionValuesSchema) ?? create(MethodOptionValuesSchema);

export const capabilityOptions = ({ proto }: DescEnumValue): CapabilityOptionValues =>
  decodeOptions(proto.options, CapabilityOptionValuesSchema) ?? create(CapabilityOptionValuesSchema);

const NO_FIELD_OPTIONS = create(FieldOptionValuesSchema);
const fieldOptionCache = new WeakMap<DescField, FieldOptionValues>();

/** The custom options of a field, decoded once per field. */
export function fieldOptions(field: DescField): FieldOptionValues {
  let options = fieldOptionCache.get(field);
  if (options === undefined) {
    options = decodeOptions(field.proto.options, FieldOptionValuesSchema) ?? NO_FIELD_OPTIONS;
    fieldOptionCache.set(field, options);
  }
  return options;
}

/** Returns undefined when no custom option is set. */
function decodeOptions<Values extends DescMessage>(
  options: Message | undefined,
  schema: Values,
): MessageShape<Values> | undefined {
  // protobuf-es keeps extensions as unknown fields. An Empty with these fields is encoded to the custom options alone.
  const customOptions = options?.$unknown;
  if (customOptions === undefined) return undefined;
  const message: Empty = { $typeName: EmptySchema.typeName, $unknown: customOptions };
  return fromBinary(schema, toBinary(EmptySchema, message), { readUnknownFields: false });
}
