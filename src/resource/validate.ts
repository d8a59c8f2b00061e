import { type DescField, type DescMessage, isMessage, type Message } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type FieldViolation, invalidFields } from '../base/errors.ts';
import { isOutputOnly, isRequired } from '../contract/field-behavior.ts';
import type { Rule } from './definition.ts';

/** The most violations that one error reports. */
const MAX_VIOLATIONS = 20;

/** Clears the output-only fields at every depth: clients may send back what they have read. */
export function clearOutputOnly(desc: DescMessage, message: Message): void {
  eachMessage(reflect(desc, message), (found) => {
    for (const field of found.fields) if (isOutputOnly(field)) found.clear(field);
  });
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
  const root = reflect(desc, message);
  for (const field of desc.fields) {
    if (only && !only.has(field.name)) continue;
    checkField(root, field, '', found);
    const rule = rules[field.name] as Rule<unknown> | undefined;
    const problem = rule && root.isSet(field) ? rule(plainValue(root, field)) : undefined;
    if (problem) found.push({ field: field.name, description: problem });
  }
  return found;
}

/** Throws INVALID_ARGUMENT if there are violations. */
export function refuse(violations: readonly FieldViolation[]): void {
  if (violations.length > 0) throw invalidFields(violations.slice(0, MAX_VIOLATIONS));
}

/** The value of a field as the message holds it, without a reflection wrapper. */
function plainValue(root: ReflectMessage, field: DescField): unknown {
  const holder = root.message as unknown as Record<string, unknown>;
  if (!field.oneof) return holder[field.localName];
  return (holder[field.oneof.localName] as { value?: unknown }).value;
}

function checkField(holder: ReflectMessage, field: DescField, prefix: string, found: FieldViolation[]): void {
  const path = prefix + field.name;
  if (!holder.isSet(field)) {
    if (isRequired(field) && !zeroIsAValue(field)) found.push({ field: path, description: 'is required' });
    return;
  }
  forEachChild(holder, field, path, (child, childPath) => {
    const problem = wellKnownProblem(child.message);
    if (problem) found.push({ field: childPath, description: problem });
    for (const inner of child.fields) checkField(child, inner, `${childPath}.`, found);
  });
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

function eachMessage(message: ReflectMessage, visit: (message: ReflectMessage) => void): void {
  visit(message);
  for (const field of message.fields) {
    if (message.isSet(field)) forEachChild(message, field, '', (child) => eachMessage(child, visit));
  }
}

/** The messages directly inside a field: itself, its list items or its map values. */
function forEachChild(
  holder: ReflectMessage,
  field: DescField,
  path: string,
  visit: (child: ReflectMessage, path: string) => void,
): void {
  if (field.fieldKind === 'message') {
    visit(holder.get(field), path);
  } else if (field.fieldKind === 'list' && field.listKind === 'message') {
    let index = 0;
    for (const item of holder.get(field)) visit(item as ReflectMessage, `${path}[${index++}]`);
  } else if (field.fieldKind === 'map' && field.mapKind === 'message') {
    for (const [key, item] of holder.get(field)) visit(item as ReflectMessage, `${path}[${String(key)}]`);
  }
}
