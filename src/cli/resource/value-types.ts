import type { DescEnum, DescField, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { getOption, hasOption, ScalarType } from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { ConfigError, durationParser } from '../../config-values.ts';
import { name as dottedName } from '../../contract/gen/capabilities/capabilities_pb.js';

/** Converts the text of a flag to JSON. The server checks the values themselves, such as the range of a number. */
export interface ValueType {
  /** The placeholder of the value in the help, such as `<text>`. */
  readonly placeholder: string;
  /** The possible values, if there are few. */
  readonly choices?: string;
  /** Throws a ConfigError that says what to write. `previous` is the value of the earlier uses of the same flag. */
  parse(text: string, previous: JsonValue | undefined): JsonValue;
}

export function valueType(field: DescField): ValueType {
  const one = singleType(field);
  switch (field.fieldKind) {
    case 'list':
      return {
        ...one,
        // Each use of the flag adds an element. An empty value makes an empty list.
        parse: (text, previous) => {
          const texts = field.enum ? text.split(',') : [text];
          return [...((previous ?? []) as JsonValue[]), ...(text === '' ? [] : texts.map((part) => one.parse(part)))];
        },
      };
    case 'map':
      return {
        placeholder: '<key=value>',
        parse: (text, previous) => ({ ...(previous as JsonObject | undefined), ...parseMapEntry(text, one.parse) }),
      };
    default:
      return one;
  }
}

type SingleType = Omit<ValueType, 'parse'> & { parse(text: string): JsonValue };

function singleType({ name, message, enum: values, scalar }: DescField): SingleType {
  if (values !== undefined) return enumType(values);
  switch (message?.typeName) {
    case undefined:
      break;
    case TimestampSchema.typeName:
      return { placeholder: '<time>', parse: (text) => (text === '' ? null : text) };
    case DurationSchema.typeName:
      // An empty value clears the field.
      return { placeholder: '<duration>', parse: (text) => (text === '' ? null : `${parseDuration(text) / 1000}s`) };
    default:
      return { placeholder: '<json>', parse: parseObject };
  }
  switch (scalar) {
    case ScalarType.STRING:
      return { placeholder: /(?:^|_)uids?$|_of$|^ids$|^parent$/.test(name) ? '<uid>' : '<text>', parse: verbatim };
    case ScalarType.BYTES:
      return { placeholder: '<base64>', parse: verbatim };
    case ScalarType.BOOL:
      return { placeholder: '[true|false]', parse: parseBoolean };
    default:
      // A number is sent as a string, which the API accepts and which keeps all digits.
      return { placeholder: '<n>', parse: verbatim };
  }
}

const verbatim = (text: string): string => text;

const parseDuration = durationParser('1ms', '36500d');

function parseBoolean(text: string): boolean {
  if (text !== 'true' && text !== 'false') throw new ConfigError('write true or false');
  return text === 'true';
}

function parseMapEntry(text: string, parse: SingleType['parse']): JsonObject {
  if (text === '') return {};
  const separator = text.indexOf('=');
  if (separator < 1) throw new ConfigError('write key=value');
  return { [text.slice(0, separator)]: parse(text.slice(separator + 1)) };
}

function parseObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {}
  throw new ConfigError('write a JSON object');
}

/** An enum value by name, in any case, with or without the prefix of the enum. A capability also by its dotted name. */
function enumType({ values, sharedPrefix = '' }: DescEnum): SingleType {
  const prefix = sharedPrefix.toUpperCase();
  const names = new Map<string, string>();
  const shortNames: string[] = [];
  for (const value of values) {
    const short = hasOption(value, dottedName) ? getOption(value, dottedName) : value.name.replace(prefix, '');
    names.set(value.name, value.name).set(short.toUpperCase(), value.name);
    if (value.number !== 0) shortNames.push(short.toLowerCase());
  }
  const choices = shortNames.length > 16 ? `a name such as ${shortNames.at(-1)}` : `one of ${shortNames.join(', ')}`;
  return {
    placeholder: '<name>',
    choices,
    parse(text) {
      const name = names.get(text.trim().toUpperCase().replaceAll('-', '_'));
      if (name === undefined) throw new ConfigError(`write ${choices}`);
      return name;
    },
  };
}
