import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { assign, childPath, fieldsByName, newFields, unknownField } from '../../contract/json/field-names.ts';
import type { Fields } from '../../contract/json/fields.ts';
import { readField } from '../../contract/json/fields.ts';
import { codecOf } from '../../contract/json/scalar-codecs.ts';
import type { Violations } from '../../contract/json/violations.ts';
import { quotable } from '../../contract/json/violations.ts';

/** A field inside a request, and the message that holds it. */
export interface Place {
  readonly owner: Fields;
  readonly field: DescField;
  /** In proto spelling, such as `uidp.children_of`. */
  readonly path: string;
}

const STEP = /^(?<name>[^.[]+)(?:\[(?<index>\d{1,9})\])?(?:\.(?<rest>.+))?$/s;

/**
 * Finds the field that a dotted name means, in any spelling, and makes the messages on the way to it.
 * `image_refs[0].repo` reaches into a list of messages, whose indexes have to come in order.
 */
export function locate(
  desc: DescMessage,
  owner: Fields,
  name: string,
  problems: Violations,
  parent = '',
): Place | undefined {
  const slots = fieldsByName(desc);
  const direct = slots.get(name)?.field;
  if (direct !== undefined) return { owner, field: direct, path: childPath(parent, direct.name) };
  const { name: spelling = '', index, rest } = STEP.exec(name)?.groups ?? {};
  const field = slots.get(spelling)?.field;
  if (field === undefined) {
    problems.report(childPath(parent, quotable(name)), unknownField(desc));
    return undefined;
  }
  const path = childPath(parent, field.name);
  const inside = enter(owner, field, index, path, problems);
  if (inside !== undefined && rest !== undefined)
    return locate(inside.desc, inside.message, rest, problems, inside.path);
  problems.report(childPath(parent, quotable(name)), `must be written as ${spell(field, path)}`);
  return undefined;
}

/** How a parameter for this field is written. */
export function spell(field: DescField, path: string): string {
  if (field.message === undefined || codecOf(field) !== undefined) return path;
  return `${path}${field.fieldKind === 'list' ? '[0]' : ''}.${field.message.fields[0]?.name}`;
}

interface Inside {
  readonly desc: DescMessage;
  readonly message: Fields;
  readonly path: string;
}

/** The message in a field, or at an index of its list; made when it is not there yet. */
function enter(
  owner: Fields,
  field: DescField,
  index: string | undefined,
  path: string,
  problems: Violations,
): Inside | undefined {
  const desc = field.message;
  if (desc === undefined || codecOf(field) !== undefined) return undefined;
  if (field.fieldKind === 'list' && index !== undefined) {
    const list = readField(owner, field) as Fields[];
    const message = list[Number(index)] ?? newFields(desc);
    if (Number(index) > list.length) return undefined;
    list[Number(index)] = message;
    return { desc, message, path: `${path}[${Number(index)}]` };
  }
  if (field.fieldKind !== 'message' || index !== undefined) return undefined;
  const message = (readField(owner, field) as Fields | undefined) ?? newFields(desc);
  assign(owner, field, message, path, problems);
  return { desc, message, path };
}
