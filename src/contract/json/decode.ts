import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import type { NamedField } from './field-names.ts';
import { childPath, fieldsByName, newMessage, setField, unknownFieldDescription } from './field-names.ts';
import type { ScalarCodec } from './scalar-codecs.ts';
import { codecOf, scalarCodec } from './scalar-codecs.ts';
import type { Violations } from './violations.ts';
import { quotable } from './violations.ts';

/**
 * Converts parsed JSON to the value that protobuf-es has for it. `path` is the proto path of the value, empty for the
 * body itself. Reports what is wrong, and then returns undefined.
 */
type JsonReader<T> = (json: unknown, path: string, problems: Violations) => T | undefined;

const messages = new WeakMap<DescMessage, JsonReader<Message>>();

/** The reader of a message type, compiled once. */
export function messageReader(desc: DescMessage): JsonReader<Message> {
  let reader = messages.get(desc);
  if (reader === undefined) {
    reader = compileMessage(desc);
    messages.set(desc, reader);
  }
  return reader;
}

/** The reader of the value of a field: a single value, a list or a map. */
export function fieldReader(field: DescField): JsonReader<unknown> {
  switch (field.fieldKind) {
    case 'list':
      return listReader(field);
    case 'map':
      return mapReader(field);
    default:
      return elementReader(field);
  }
}

function compileMessage(desc: DescMessage): JsonReader<Message> {
  const fields = fieldsByName(desc);
  const readers = new Map<NamedField, JsonReader<unknown>>();
  // Compiled on first use, because a message type may contain itself.
  const readerOf = (named: NamedField) => {
    let reader = readers.get(named);
    if (reader === undefined) {
      reader = fieldReader(named.field);
      readers.set(named, reader);
    }
    return reader;
  };
  return (json, path, problems) => {
    if (!isObject(json)) {
      problems.report(path || 'body', 'must be a JSON object');
      return undefined;
    }
    const message = newMessage(desc);
    for (const key of Object.keys(json)) {
      const named = fields.get(key);
      if (named === undefined) {
        problems.reportUnknown(childPath(path, quotable(key)), () => unknownFieldDescription(desc));
        continue;
      }
      const fieldPath = childPath(path, named.field.name);
      const first = named.spellings.find((spelling) => Object.hasOwn(json, spelling));
      if (first !== key) {
        problems.report(fieldPath, `is given twice, as ${first} and as ${key}`);
        continue;
      }
      // In the JSON mapping of protobuf, null means absent.
      if (json[key] === null) continue;
      const value = readerOf(named)(json[key], fieldPath, problems);
      if (value !== undefined) setField(message, named.field, value, fieldPath, problems);
    }
    return message;
  };
}

function elementReader(field: DescField): JsonReader<unknown> {
  const codec = codecOf(field);
  if (codec !== undefined) return scalarReader(codec);
  if (field.message === undefined) throw new Error(`${field} is neither a value nor a message`);
  return messageReader(field.message);
}

const scalarReader =
  (codec: ScalarCodec): JsonReader<unknown> =>
  (json, path, problems) => {
    const value = codec.json(json);
    if (value === undefined) problems.report(path || 'body', `must be ${codec.expected}`);
    return value;
  };

/** Reads list items and map entries. The path of a plain value is built only if it is invalid. */
type ItemReader = (json: unknown, path: () => string, problems: Violations) => unknown;

function itemReader(field: DescField): ItemReader {
  const codec = codecOf(field);
  if (codec === undefined) {
    const read = elementReader(field);
    return (json, path, problems) => read(json, path(), problems);
  }
  return (json, path, problems) => {
    const value = codec.json(json);
    if (value === undefined) problems.report(path(), `must be ${codec.expected}`);
    return value;
  };
}

function listReader(field: DescField): JsonReader<unknown[]> {
  const item = itemReader(field);
  return (json, path, problems) => {
    if (Array.isArray(json)) {
      return json.map((value, index) => item(value, () => `${path || 'body'}[${index}]`, problems));
    }
    problems.report(path || 'body', 'must be a JSON array');
    return undefined;
  };
}

function mapReader(field: DescField & { fieldKind: 'map' }): JsonReader<Record<string, unknown>> {
  const keyCodec = scalarCodec(field.mapKey);
  const item = itemReader(field);
  return (json, path, problems) => {
    if (!isObject(json)) {
      problems.report(path || 'body', 'must be a JSON object');
      return undefined;
    }
    const map: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(json)) {
      const entryPath = () => `${path || 'body'}["${quotable(key)}"]`;
      if (keyCodec.text(key) === undefined) problems.report(entryPath(), `the key must be ${keyCodec.expected}`);
      // An assignment to it would change the prototype of the map.
      else if (key === '__proto__') problems.report(entryPath(), 'the key must not be __proto__');
      else map[key] = item(value, entryPath, problems);
    }
    return map;
  };
}

export const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === 'object' && json !== null && !Array.isArray(json);
