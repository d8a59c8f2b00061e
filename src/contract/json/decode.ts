import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import type { NamedField } from './field-names.ts';
import { assign, childPath, fieldsByName, newFields, unknownField } from './field-names.ts';
import type { ScalarCodec } from './scalar-codecs.ts';
import { codecOf, scalarCodec } from './scalar-codecs.ts';
import type { Violations } from './violations.ts';
import { quotable } from './violations.ts';

/**
 * Reads parsed JSON into what protobuf-es keeps for it. `path` is the proto path of the value, empty for the body itself.
 * What is wrong is reported; the answer is then undefined.
 */
type Read<T> = (json: unknown, path: string, problems: Violations) => T | undefined;

const messages = new WeakMap<DescMessage, Read<Message>>();

/** The reader of a message type, compiled once. */
export function messageReader(desc: DescMessage): Read<Message> {
  let reader = messages.get(desc);
  if (reader === undefined) {
    reader = compileMessage(desc);
    messages.set(desc, reader);
  }
  return reader;
}

/** The reader of whatever a field holds: a value, a list or a map. */
export function fieldReader(field: DescField): Read<unknown> {
  switch (field.fieldKind) {
    case 'list':
      return listReader(elementReader(field));
    case 'map':
      return mapReader(scalarCodec(field.mapKey), elementReader(field));
    default:
      return elementReader(field);
  }
}

function compileMessage(desc: DescMessage): Read<Message> {
  const slots = fieldsByName(desc);
  const readers = new Map<NamedField, Read<unknown>>();
  // Compiled on first use, since a message type may hold itself.
  const readerOf = (slot: NamedField) => {
    let reader = readers.get(slot);
    if (reader === undefined) {
      reader = fieldReader(slot.field);
      readers.set(slot, reader);
    }
    return reader;
  };
  return (json, path, problems) => {
    if (!isObject(json)) {
      problems.report(path || 'body', 'must be a JSON object');
      return undefined;
    }
    const message = newFields(desc);
    for (const key of Object.keys(json)) {
      const slot = slots.get(key);
      if (slot === undefined) {
        problems.report(childPath(path, quotable(key)), unknownField(desc));
        continue;
      }
      const at = childPath(path, slot.field.name);
      const first = slot.spellings.find((spelling) => Object.hasOwn(json, spelling));
      if (first !== key) {
        problems.report(at, `given twice, as ${first} and as ${key}`);
        continue;
      }
      // In the JSON form of protobuf null is the same as absent.
      if (json[key] === null) continue;
      const value = readerOf(slot)(json[key], at, problems);
      if (value !== undefined) assign(message, slot.field, value, at, problems);
    }
    return message;
  };
}

function elementReader(field: DescField): Read<unknown> {
  const leaf = codecOf(field);
  if (leaf !== undefined) return leafReader(leaf);
  if (field.message === undefined) throw new Error(`${field} is neither a value nor a message`);
  return messageReader(field.message);
}

const leafReader =
  (leaf: ScalarCodec): Read<unknown> =>
  (json, path, problems) => {
    const value = leaf.json(json);
    if (value === undefined) problems.report(path || 'body', `must be ${leaf.expected}`);
    return value;
  };

const listReader =
  (element: Read<unknown>): Read<unknown[]> =>
  (json, path, problems) => {
    if (Array.isArray(json)) return json.map((item, index) => element(item, `${path || 'body'}[${index}]`, problems));
    problems.report(path || 'body', 'must be a JSON array');
    return undefined;
  };

const mapReader =
  (keyLeaf: ScalarCodec, element: Read<unknown>): Read<Record<string, unknown>> =>
  (json, path, problems) => {
    if (!isObject(json)) {
      problems.report(path || 'body', 'must be a JSON object');
      return undefined;
    }
    const map: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(json)) {
      const at = `${path || 'body'}["${quotable(key)}"]`;
      if (keyLeaf.text(key) === undefined) problems.report(at, `the key must be ${keyLeaf.expected}`);
      // Assigning it would change the prototype of the map instead of adding an entry.
      else if (key === '__proto__') problems.report(at, 'the key must not be __proto__');
      else map[key] = element(value, at, problems);
    }
    return map;
  };

const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === 'object' && json !== null && !Array.isArray(json);
