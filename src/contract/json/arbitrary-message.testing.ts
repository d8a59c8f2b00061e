import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { create, fromJson, ScalarType } from '@bufbuild/protobuf';
import {
  DurationSchema,
  FeatureSet_FieldPresence,
  FieldMaskSchema,
  TimestampSchema,
  timestampFromMs,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import type { Arbitrary } from 'fast-check';
import fc from 'fast-check';
import { isInputOnly } from '../field-behavior.ts';

/** Messages that a server may return: times in whole milliseconds, known enum values, no input-only fields. */
export function arbitraryMessage(desc: DescMessage): Arbitrary<Message> {
  const wellKnown = wellKnownMessages.get(desc.typeName);
  if (wellKnown !== undefined) return wellKnown;
  const members = desc.members
    .map((member): [string, Arbitrary<unknown>] => {
      if (member.kind === 'field') return [member.localName, fieldValue(member)];
      const cases = member.fields.map((field) => single(field).map((value) => ({ case: field.localName, value })));
      return [member.localName, fc.oneof(fc.constant({ case: undefined }), ...cases)];
    })
    .filter(([name]) => !desc.fields.some((field) => field.localName === name && isInputOnly(field)));
  return fc.record(Object.fromEntries(members), { requiredKeys: [] }).map((init) => create(desc, init));
}

function fieldValue(field: DescField): Arbitrary<unknown> {
  switch (field.fieldKind) {
    case 'list':
      return fc.array(single(field), { maxLength: 3 });
    case 'map':
      return fc.dictionary(field.mapKey === ScalarType.STRING ? key : int64.map(String), single(field), {
        maxKeys: 3,
        noNullPrototype: true,
      });
    default:
      return field.presence === FeatureSet_FieldPresence.IMPLICIT
        ? single(field)
        : fc.option(single(field), { nil: undefined });
  }
}

function single({ message, enum: values, scalar }: DescField): Arbitrary<unknown> {
  if (message !== undefined) return arbitraryMessage(message);
  if (values !== undefined) return fc.constantFrom(...values.values.map(({ number }) => number));
  const arbitrary = scalar === undefined ? undefined : scalars.get(scalar);
  if (arbitrary === undefined) throw new Error(`no arbitrary for scalar type ${scalar}`);
  return arbitrary;
}

const text = fc.string({ unit: 'binary', maxLength: 8 }).filter((value) => !value.includes('\0'));
const key = text.filter((value) => value !== '__proto__');
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

const scalars = new Map<ScalarType, Arbitrary<unknown>>([
  [ScalarType.STRING, text],
  [ScalarType.BOOL, fc.boolean()],
  [ScalarType.BYTES, fc.uint8Array({ maxLength: 8 })],
  [ScalarType.INT32, fc.integer()],
  [ScalarType.UINT32, fc.nat(2 ** 32 - 1)],
  [ScalarType.INT64, int64],
]);

const duration = fc
  .tuple(fc.integer({ min: -315_576_000_000, max: 315_576_000_000 }), fc.nat(999_999_999))
  .map(([seconds, nanos]) =>
    create(DurationSchema, { seconds: BigInt(seconds), nanos: seconds < 0 ? nanos && -nanos : nanos }),
  );

const jsonScalar = fc.oneof(fc.string({ unit: 'grapheme' }), fc.boolean(), fc.integer(), fc.constant(null));

const wellKnownMessages = new Map<string, Arbitrary<Message>>([
  [ValueSchema.typeName, jsonScalar.map((json) => fromJson(ValueSchema, json))],
  [TimestampSchema.typeName, fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }).map(timestampFromMs)],
  [DurationSchema.typeName, duration],
  [
    FieldMaskSchema.typeName,
    fc.array(fc.stringMatching(/^[a-z]+(_[a-z]+)*$/)).map((paths) => create(FieldMaskSchema, { paths })),
  ],
]);
