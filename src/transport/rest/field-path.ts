import type { DescField, DescMessage } from '@bufbuild/protobuf';
import {
  childPath,
  fieldsByName,
  newMessage,
  setField,
  unknownFieldDescription,
} from '../../contract/json/field-names.ts';
import type { Fields } from '../../contract/json/fields.ts';
import { readField } from '../../contract/json/fields.ts';
import { codecOf } from '../../contract/json/scalar-codecs.ts';
import type { Violations } from '../../contract/json/violations.ts';
import { quotable } from '../../contract/json/violations.ts';

/** A field in a request message. */
export interface FieldLocation {
  /** The message that contains the field. */
  readonly owner: Fields;
  readonly field: DescField;
  /** The proto path, such as `uidp.children_of`. */
  readonly path: string;
}

const STEP = /^(?<name>[^.[]+)(?:\[(?<index>\d{1,9})\])?(?:\.(?<rest>.+))?$/s;

/**
 * Finds the field with a dotted name, in any spelling, and creates the messages on the path to it. `image_refs[0].repo`
 * is a field in a list of messages; the indexes must be given in order.
 */
export function locateField(
  desc: DescMessage,
  owner: Fields,
  name: string,
  problems: Violations,
  parent = '',
): FieldLocation | undefined {
  const fields = fieldsByName(desc);
  const direct = fields.get(name)?.field;
  if (direct !== undefined) return { owner, field: direct, path: childPath(parent, direct.name) };
  const { name: spelling = '', index, rest } = STEP.exec(name)?.groups ?? {};
  const field = fields.get(spelling)?.field;
  if (field === undefined) {
    problems.reportUnknown(childPath(parent, quotable(name)), () => unknownFieldDescription(desc));
    return undefined;
  }
  const path = childPath(parent, field.name);
  const nested = openMessage(owner, field, index, path, problems);
  if (nested !== undefined && rest !== undefined)
    return locateField(nested.desc, nested.message, rest, problems, nested.path);
  problems.report(childPath(parent, quotable(name)), `must be written as ${parameterNameOf(field, path)}`);
  return undefined;
}

/** The name of a query parameter that sets this field. */
export function parameterNameOf(field: DescField, path: string): string {
  if (field.message === undefined || codecOf(field) !== undefined) return path;
  return `${path}${field.fieldKind === 'list' ? '[0]' : ''}.${field.message.fields[0]?.name}`;
}

interface NestedMessage {
  readonly desc: DescMessage;
  readonly message: Fields;
  readonly path: string;
}

/** The message in a field, or at an index of its list. Creates it when it does not exist. */
function openMessage(
  owner: Fields,
  field: DescField,
  index: string | undefined,
  path: string,
  problems: Violations,
): NestedMessage | undefined {
  const desc = field.message;
  if (desc === undefined || codecOf(field) !== undefined) return undefined;
  if (field.fieldKind === 'list' && index !== undefined) {
    const list = readField(owner, field) as Fields[];
    const message = list[Number(index)] ?? newMessage(desc);
    if (Number(index) > list.length) return undefined;
    list[Number(index)] = message;
    return { desc, message, path: `${path}[${Number(index)}]` };
  }
  if (field.fieldKind !== 'message' || index !== undefined) return undefined;
  const message = (readField(owner, field) as Fields | undefined) ?? newMessage(desc);
  setField(owner, field, message, path, problems);
  return { desc, message, path };
}
