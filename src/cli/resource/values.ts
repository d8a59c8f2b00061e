import type { DescEnum, DescField, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { getOption, hasOption, ScalarType } from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { ConfigError, duration } from '../../config-values.ts';
import { name as dottedName } from '../../contract/gen/capabilities/capabilities_pb.js';

/** How the text after a flag becomes JSON. What only the server can judge, such as a number's range, is left to it. */
export interface ValueType {
  /** Stands for the value in the help, such as `<text>`. */
  readonly placeholder: string;
  /** What can be written, where that is not much. */
  readonly choices?: string;
  /** Throws a ConfigError that says what would be right. `before` is what the same flag gave so far. */
  read(text: string, before: JsonValue | undefined): JsonValue;
}

export function valueType(field: DescField): ValueType {
  const one = single(field);
  switch (field.fieldKind) {
    case 'list':
      return {
        ...one,
        // A flag for each element; an empty one stands for the empty list.
        read: (text, before) => {
          const texts = field.enum ? text.split(',') : [text];
          return [...((before ?? []) as JsonValue[]), ...(text === '' ? [] : texts.map((part) => one.read(part)))];
        },
      };
    case 'map':
      return {
        placeholder: '<key=value>',
        read: (text, before) => ({ ...(before as JsonObject | undefined), ...entry(text, one.read) }),
      };
    default:
      return one;
  }
}

type Single = Omit<ValueType, 'read'> & { read(text: string): JsonValue };

function single({ name, message, enum: values, scalar }: DescField): Single {
  if (values !== undefined) return enumValue(values);
  switch (message?.typeName) {
    case undefined:
      break;
    case TimestampSchema.typeName:
      return { placeholder: '<time>', read: asItIs };
    case DurationSchema.typeName:
      return { placeholder: '<duration>', read: (text) => `${readDuration(text) / 1000}s` };
    default:
      return { placeholder: '<json>', read: jsonObject };
  }
  switch (scalar) {
    case ScalarType.STRING:
      return { placeholder: /(?:^|_)uids?$|_of$|^ids$|^parent$/.test(name) ? '<uid>' : '<text>', read: asItIs };
    case ScalarType.BYTES:
      return { placeholder: '<base64>', read: asItIs };
    case ScalarType.BOOL:
      return { placeholder: '[true|false]', read: truth };
    default:
      // As a string, which the API takes and which loses no digits.
      return { placeholder: '<n>', read: asItIs };
  }
}

const asItIs = (text: string): string => text;

const readDuration = duration('1ms', '36500d');

function truth(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new ConfigError('write true or false');
  return text === 'true';
}

function entry(text: string, read: Single['read']): JsonObject {
  if (text === '') return {};
  const cut = text.indexOf('=');
  if (cut < 1) throw new ConfigError('write key=value');
  return { [text.slice(0, cut)]: read(text.slice(cut + 1)) };
}

function jsonObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {}
  throw new ConfigError('write a JSON object');
}

/** By name in any case, with or without what all names of the enum start with; a capability also by its dotted name. */
function enumValue({ values, sharedPrefix = '' }: DescEnum): Single {
  const prefix = sharedPrefix.toUpperCase();
  const names = new Map<string, string>();
  const spoken: string[] = [];
  for (const value of values) {
    const short = hasOption(value, dottedName) ? getOption(value, dottedName) : value.name.replace(prefix, '');
    names.set(value.name, value.name).set(short.toUpperCase(), value.name);
    if (value.number !== 0) spoken.push(short.toLowerCase());
  }
  const choices = spoken.length > 16 ? `a name such as ${spoken.at(-1)}` : `one of ${spoken.join(', ')}`;
  return {
    placeholder: '<name>',
    choices,
    read(text) {
      const found = names.get(text.trim().toUpperCase().replaceAll('-', '_'));
      if (found === undefined) throw new ConfigError(`write ${choices}`);
      return found;
    },
  };
}
