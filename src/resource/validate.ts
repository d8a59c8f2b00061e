import { type DescField, type DescMessage, isMessage, type Message } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type FieldViolation, invalidFields } from '../base/errors.ts';
import { isOutputOnly, isRequired } from '../contract/field-behavior.ts';
import type { Rule } from './definition.ts';

/** More violations than this help nobody. */
const MAX_VIOLATIONS = 20;

/** Forgets what only the server may write, at every depth: callers may echo what they read. */
export function clearOutputOnly(desc: DescMessage, message: Message): void {
  eachMessage(reflect(desc, message), (found) => {
    for (const field of found.fields) if (isOutputOnly(field)) found.clear(field);
  });
}

/** Refuses a message that lacks a REQUIRED field, breaks a rule or names a time that is none. With `only`, looks at those top-level fields alone. */
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
    judge(root, field, '', found);
    const rule = rules[field.name] as Rule<unknown> | undefined;
    const wrong = rule && root.isSet(field) ? rule(plain(root, field)) : undefined;
    if (wrong) found.push({ field: field.name, description: wrong });
  }
  return found;
}

/** Throws when there is anything to complain about. */
export function refuse(violations: readonly FieldViolation[]): void {
  if (violations.length > 0) throw invalidFields(violations.slice(0, MAX_VIOLATIONS));
}

/** The property of the message itself, free of reflection wrappers. */
function plain(root: ReflectMessage, field: DescField): unknown {
  const holder = root.message as unknown as Record<string, unknown>;
  if (!field.oneof) return holder[field.localName];
  return (holder[field.oneof.localName] as { value?: unknown }).value;
}

function judge(holder: ReflectMessage, field: DescField, prefix: string, found: FieldViolation[]): void {
  const path = prefix + field.name;
  if (!holder.isSet(field)) {
    if (isRequired(field) && !zeroIsAValue(field)) found.push({ field: path, description: 'is required' });
    return;
  }
  forEachChild(holder, field, path, (child, childPath) => {
    if (isMessage(child.message, TimestampSchema) && !isTime(child.message)) {
      found.push({ field: childPath, description: 'must be a time of the years 1 to 9999' });
    }
    for (const inner of child.fields) judge(child, inner, `${childPath}.`, found);
  });
}

/** JSON can say no other times, and no database holds them; a binary message may say anything. */
const isTime = ({ seconds, nanos }: Timestamp): boolean =>
  seconds >= -62_135_596_800n && seconds <= 253_402_300_799n && nanos >= 0 && nanos <= 999_999_999;

/** Without presence, `false` and 0 cannot be told from absent. */
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
