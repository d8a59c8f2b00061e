import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import type { Fields } from './fields.ts';
import type { Violations } from './violations.ts';
import { camelCase } from './well-known.ts';

export const newMessage = (desc: DescMessage): Fields => create(desc) as Fields;

/** A field and the names that a client may use for it. */
export interface NamedField {
  readonly field: DescField;
  /** The proto name, the JSON name and the proto name in camelCase, without duplicates. */
  readonly spellings: readonly string[];
}

const cache = new WeakMap<DescMessage, ReadonlyMap<string, NamedField>>();

/**
 * The fields of a message by every spelling. It is a Map because clients can send `__proto__` and `constructor` as
 * names.
 */
export function fieldsByName(desc: DescMessage): ReadonlyMap<string, NamedField> {
  let fields = cache.get(desc);
  if (fields === undefined) {
    fields = new Map(
      desc.fields.flatMap((field) => {
        const spellings = [...new Set([field.name, field.jsonName, camelCase(field.name)])];
        const named = { field, spellings };
        return spellings.map((spelling) => [spelling, named] as const);
      }),
    );
    cache.set(desc, fields);
  }
  return fields;
}

/** Sets a field. Reports a violation if another field of its oneof is already set. */
export function setField(message: Fields, field: DescField, value: unknown, path: string, problems: Violations): void {
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

export const unknownFieldDescription = ({ name, fields }: DescMessage): string =>
  `is not one of the fields of ${name}: ${fields.map(({ jsonName }) => jsonName).join(', ') || 'it has none'}`;

export const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
