import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import type { Fields } from './fields.ts';
import type { Violations } from './violations.ts';
import { camelCase } from './well-known.ts';

export const newFields = (desc: DescMessage): Fields => create(desc) as Fields;

/** A field under the names a client may call it. */
export interface NamedField {
  readonly field: DescField;
  /** Proto name, JSON name and camelCase, without repetition. */
  readonly spellings: readonly string[];
}

const known = new WeakMap<DescMessage, ReadonlyMap<string, NamedField>>();

/** The slots of a message by every spelling. A Map, since `__proto__` and `constructor` are names a client can send. */
export function fieldsByName(desc: DescMessage): ReadonlyMap<string, NamedField> {
  let slots = known.get(desc);
  if (slots === undefined) {
    slots = new Map(
      desc.fields.flatMap((field) => {
        const spellings = [...new Set([field.name, field.jsonName, camelCase(field.name)])];
        const slot = { field, spellings };
        return spellings.map((spelling) => [spelling, slot] as const);
      }),
    );
    known.set(desc, slots);
  }
  return slots;
}

/** Sets a field, unless another member of its oneof is there already. */
export function assign(message: Fields, field: DescField, value: unknown, path: string, problems: Violations): void {
  const { localName, oneof } = field;
  if (oneof === undefined) {
    message[localName] = value;
    return;
  }
  const chosen = message[oneof.localName] as { case?: string };
  if (chosen.case === undefined || chosen.case === localName) {
    message[oneof.localName] = { case: localName, value };
  } else {
    problems.report(path, `only one of ${oneof.fields.map(({ name }) => name).join(', ')} may be set`);
  }
}

export const unknownField = ({ name, fields }: DescMessage): string =>
  `is not one of the fields of ${name}: ${fields.map(({ jsonName }) => jsonName).join(', ') || 'it has none'}`;

export const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
