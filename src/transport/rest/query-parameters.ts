import type { DescMessage } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import { messageReader } from '../../contract/json/decode.ts';
import { setField } from '../../contract/json/field-names.ts';
import type { Fields } from '../../contract/json/fields.ts';
import { readField } from '../../contract/json/fields.ts';
import type { ScalarCodec } from '../../contract/json/scalar-codecs.ts';
import { codecOf } from '../../contract/json/scalar-codecs.ts';
import type { Violations } from '../../contract/json/violations.ts';
import { quotable } from '../../contract/json/violations.ts';
import type { FieldLocation } from './field-path.ts';
import { locateField, parameterNameOf } from './field-path.ts';
import { percentDecode } from './request-target.ts';

export interface Parameter {
  readonly name: string;
  readonly value: string;
}

/**
 * The parameters of query strings and form bodies (WHATWG URL section 5.1). Unlike there, invalid escapes are refused.
 * They are split one by one, so that nothing is split after the request is refused.
 */
export function* readableParameters(
  texts: readonly string[],
  max: number,
  problems: Violations,
): Generator<Parameter, void> {
  let count = 0;
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const separator = text.indexOf('&', start);
      const end = separator < 0 ? text.length : separator;
      if (++count > max) throw invalid('query', `must have at most ${max} parameters; send several requests`);
      if (end > start) {
        const pair = text.slice(start, end);
        const cut = pair.indexOf('=');
        const name = decode(cut < 0 ? pair : pair.slice(0, cut));
        const value = decode(cut < 0 ? '' : pair.slice(cut + 1));
        if (name !== undefined && value !== undefined) yield { name, value };
        else problems.report(name === undefined ? 'query' : quotable(name), 'must be percent-encoded UTF-8');
      }
      start = end + 1;
    }
  }
}

const decode = (text: string) => (ENCODED.test(text) ? percentDecode(text.replaceAll('+', ' ')) : text);
const ENCODED = /[+%]/;

/** Reads parameters into a message. `boundBy` returns the other source of the field at a path, such as `the body`. */
export function readParameters(
  desc: DescMessage,
  message: Fields,
  parameters: Iterable<Parameter>,
  boundBy: (path: string) => string | undefined,
  problems: Violations,
): void {
  const seen = new Set<string>();
  for (const { name, value } of parameters) {
    const location = locateField(desc, message, name, problems);
    if (location === undefined) continue;
    const { field, path } = location;
    const other = boundBy(path);
    if (other !== undefined) problems.report(path, `is already given by ${other}`);
    else if (field.fieldKind === 'list') readListParameter(location, value, problems);
    else if (seen.has(path)) problems.report(path, 'may be given only once');
    else readSingleParameter(location, value, problems);
    seen.add(path);
  }
}

export function readSingleParameter({ owner, field, path }: FieldLocation, text: string, problems: Violations): void {
  const codec = field.fieldKind === 'map' ? undefined : codecOf(field);
  if (codec === undefined) {
    const remedy =
      field.fieldKind === 'map'
        ? 'is a map: send it in the body'
        : `must be written as ${parameterNameOf(field, path)}`;
    problems.report(path, remedy);
    return;
  }
  const value = readText(codec, text, path, problems);
  if (value !== undefined) setField(owner, field, value, path, problems);
}

function readListParameter({ owner, field, path }: FieldLocation, text: string, problems: Violations): void {
  const list = readField(owner, field) as unknown[];
  const codec = codecOf(field);
  if (codec !== undefined) {
    // Clients repeat the parameter or separate the values by commas.
    for (const part of text.split(',')) {
      if (part !== '') list.push(readText(codec, part, path, problems));
    }
    return;
  }
  // A list of messages is sent as `image_refs[0].repo=a&image_refs[0].tags=b`, which `locateField` handles, or as one
  // JSON object for each message: `image_refs={"repo":"a","tags":["b"]}`.
  const itemPath = `${path}[${list.length}]`;
  const json = parseObject(text);
  if (json === undefined || field.message === undefined) {
    problems.report(itemPath, `must be a JSON object, or written as ${parameterNameOf(field, path)}`);
    return;
  }
  const message = messageReader(field.message)(json, itemPath, problems);
  if (message !== undefined) list.push(message);
}

function readText(codec: ScalarCodec, text: string, path: string, problems: Violations): unknown {
  const value = codec.text(text);
  if (value === undefined) problems.report(path, `must be ${codec.expected}`);
  return value;
}

function parseObject(text: string): unknown {
  try {
    return text.trimStart().startsWith('{') ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}
