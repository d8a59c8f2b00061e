import { type DescField, type DescMessage, isMessage, type Message } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import {
  type Duration,
  DurationSchema,
  FeatureSet_FieldPresence,
  type Timestamp,
  TimestampSchema,
} from '@bufbuild/protobuf/wkt';
import { type FieldViolation, invalidFields } from '../base/errors.ts';
import { isOutputOnly, isRequired } from '../contract/field-behavior.ts';
import { type Fields, readField } from '../contract/json/fields.ts';
import type { Rule } from './definition.ts';

/** The most violations that one error reports. */
const MAX_VIOLATIONS = 20;

/** Clears the output-only fields at every depth: clients may send back what they have read. */
export function clearOutputOnly(desc: DescMessage, message: Message): void {
  const { own, inner } = outputOnlyFields(desc);
  for (const field of own) reflect(desc, message).clear(field);
  for (const field of inner) forEachChild(message as Fields, field, '', clearOutputOnly);
}

/**
 * Returns what is wrong with a message: missing REQUIRED fields, values that break a rule, times and durations out of
 * range. With `only`, it checks those top-level fields alone.
 */
export function validate(
  desc: DescMessage,
  message: Message,
  rules: Readonly<Record<string, Rule<never>>> = {},
  only?: ReadonlySet<string>,
): FieldViolation[] {
  const found: FieldViolation[] = [];
  const root = message as Fields;
  for (const field of desc.fields) {
    if (only && !only.has(field.name)) continue;
    checkField(root, field, '', found);
    const rule = rules[field.name] as Rule<unknown> | undefined;
    const problem = rule && isSet(root, field) ? rule(readField(root, field)) : undefined;
    if (problem) found.push({ field: field.name, description: problem });
  }
  return found;
}

/** Throws INVALID_ARGUMENT if there are violations. */
export function refuse(violations: readonly FieldViolation[]): void {
  if (violations.length > 0) throw invalidFields(violations.slice(0, MAX_VIOLATIONS));
}

function checkField(holder: Fields, field: DescField, prefix: string, found: FieldViolation[]): void {
  const path = prefix + field.name;
  if (!isSet(holder, field)) {
    if (isRequired(field) && !zeroIsAValue(field)) found.push({ field: path, description: 'is required' });
    return;
  }
  forEachChild(holder, field, path, (desc, child, childPath) => {
    const problem = wellKnownProblem(child);
    if (problem) found.push({ field: childPath, description: problem });
    for (const inner of checkedFields(desc).all) checkField(child as Fields, inner, `${childPath}.`, found);
  });
}

function isSet(message: Fields, field: DescField): boolean {
  const value = readField(message, field);
  switch (field.fieldKind) {
    case 'list':
      return (value as readonly unknown[]).length > 0;
    case 'map':
      return Object.keys(value as object).length > 0;
    case 'message':
      return value !== undefined;
    default:
      if (field.oneof !== undefined) return value !== undefined;
      // A field with explicit presence that is not set has its default in the prototype of the message.
      if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return Object.hasOwn(message, field.localName);
      return value instanceof Uint8Array ? value.length > 0 : Boolean(value);
  }
}

/** The JSON decoder refuses these values, but a binary message can contain them. */
function wellKnownProblem(message: Message): string | undefined {
  if (isMessage(message, TimestampSchema) && !isTime(message)) return 'must be a time of the years 1 to 9999';
  if (isMessage(message, DurationSchema) && !isDuration(message)) return 'must be a duration of at most 10,000 years';
  return undefined;
}

const isTime = ({ seconds, nanos }: Timestamp): boolean =>
  seconds >= -62_135_596_800n && seconds <= 253_402_300_799n && nanos >= 0 && nanos <= 999_999_999;

/** google.protobuf.Duration: seconds and nanos have the same sign. */
const isDuration = ({ seconds, nanos }: Duration): boolean =>
  seconds >= -315_576_000_000n &&
  seconds <= 315_576_000_000n &&
  Math.abs(nanos) <= 999_999_999 &&
  (seconds === 0n || nanos === 0 || seconds > 0n === nanos > 0);

/** Of a number or boolean without presence, zero and absent are the same. */
const zeroIsAValue = (field: DescField): boolean =>
  field.fieldKind === 'scalar' && field.scalar !== 9 && field.scalar !== 12;

/** The fields of a message type that a check of messages must look at. */
interface Inspected {
  /** The fields that are of interest themselves. */
  readonly own: readonly DescField[];
  /** Other fields, in whose messages there are such fields. */
  readonly inner: readonly DescField[];
  /** Both, in their order in the contract. */
  readonly all: readonly DescField[];
}

/** Returns a function that finds, once per type, the fields to look at. Most types of a large request have none. */
function inspector(isOfInterest: (field: DescField) => boolean): (desc: DescMessage) => Inspected {
  const known = new Map<DescMessage, Inspected>();
  const contains = new Map<DescMessage, boolean>();
  function hasAny(desc: DescMessage): boolean {
    const cached = contains.get(desc);
    if (cached !== undefined) return cached;
    // For a type that contains itself.
    contains.set(desc, true);
    const result = desc.fields.some((field) => isOfInterest(field) || (field.message && hasAny(field.message)));
    contains.set(desc, result);
    return result;
  }
  return (desc) => {
    let inspected = known.get(desc);
    if (inspected === undefined) {
      const all = desc.fields.filter((field) => isOfInterest(field) || (field.message && hasAny(field.message)));
      const own = all.filter(isOfInterest);
      inspected = { own, inner: all.filter((field) => !own.includes(field)), all };
      known.set(desc, inspected);
    }
    return inspected;
  };
}

const outputOnlyFields = inspector(isOutputOnly);
const checkedFields = inspector((field) => isRequired(field) || isTimeOrDuration(field.message));

const isTimeOrDuration = (desc: DescMessage | undefined): boolean =>
  desc?.typeName === TimestampSchema.typeName || desc?.typeName === DurationSchema.typeName;

/** The messages directly inside a field: itself, its list items or its map values. */
function forEachChild(
  holder: Fields,
  field: DescField,
  path: string,
  visit: (desc: DescMessage, child: Message, path: string) => void,
): void {
  const { message: desc, fieldKind } = field;
  if (desc === undefined) return;
  const value = readField(holder, field);
  if (value === undefined) return;
  if (fieldKind === 'list') {
    for (const [index, item] of (value as readonly Message[]).entries()) visit(desc, item, `${path}[${index}]`);
  } else if (fieldKind === 'map') {
    for (const [key, item] of Object.entries(value as Record<string, Message>)) visit(desc, item, `${path}[${key}]`);
  } else {
    visit(desc, value as Message, path);
  }
}
