import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { startSlices } from '../../base/slices.ts';
import { isInputOnly } from '../field-behavior.ts';
import { hasMoreItems, LARGE_TEXT, nestedFields } from '../large-message.ts';
import { type AddField, compileField, encodeJson, isPageItems } from './encode.ts';
import { toLatin1 } from './encode-latin1.ts';
import { type Fields, readField } from './fields.ts';

/** Pieces of text are joined to parts of this length, and the parts at the end. */
const PART_LENGTH = 64 * 1024;
/** A message with at most this many messages in its lists is one piece. */
const PIECE_ITEMS = 50;

/** The JSON of a large message as Latin-1, as `encodeJsonLatin1` encodes it, but in slices. */
export const encodeJsonLatin1InSlices = (desc: DescMessage, message: Message): Promise<string> =>
  encodeJsonInSlices(desc, message, toLatin1);

/** The JSON of a large message, as `encodeJson` encodes it, but in slices. `convert` converts each part of the text. */
export async function encodeJsonInSlices(
  desc: DescMessage,
  message: Message,
  convert: (part: string) => string = (part) => part,
): Promise<string> {
  const slices = startSlices();
  const parts: string[] = [];
  let part = '';
  for (const piece of pieces(desc, message as Fields)) {
    part += piece;
    if (part.length < PART_LENGTH) continue;
    parts.push(convert(part));
    part = '';
    if (slices.isOver()) await slices.next();
  }
  parts.push(convert(part));
  return parts.join('');
}

function* pieces(desc: DescMessage, message: Fields): Generator<string, void> {
  let separator = '{';
  for (const { field, addField, isNested } of fieldsOf(desc)) {
    const { jsonName, fieldKind, message: type } = field;
    const value = readField(message, field);
    if (isNested && fieldKind === 'list') {
      const items = value as readonly Fields[];
      if (items.length === 0 && !isPageItems(field)) continue;
      yield `${separator}"${jsonName}":[`;
      yield* listPieces(type as DescMessage, items);
      yield ']';
    } else if (isNested) {
      if (value === undefined) continue;
      yield `${separator}"${jsonName}":`;
      yield* messagePieces(type as DescMessage, value as Fields);
    } else if (typeof value === 'string' && value.length > LARGE_TEXT) {
      yield `${separator}"${jsonName}":`;
      yield* textPieces(value);
    } else {
      const json = {};
      addField(message, json);
      const text = JSON.stringify(json);
      if (text === '{}') continue;
      yield separator + text.slice(1, -1);
    }
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

function* listPieces(type: DescMessage, items: readonly Fields[]): Generator<string, void> {
  for (const [index, item] of items.entries()) {
    if (index > 0) yield ',';
    yield* messagePieces(type, item);
  }
}

function* messagePieces(type: DescMessage, message: Fields): Generator<string, void> {
  if (hasMoreItems(type, message, PIECE_ITEMS)) yield* pieces(type, message);
  else yield encodeJson(type, message);
}

function* textPieces(text: string): Generator<string, void> {
  yield '"';
  for (let at = 0; at < text.length; ) {
    const last = text.charCodeAt(at + PART_LENGTH - 1);
    // Half of a surrogate pair would be escaped.
    const end = at + PART_LENGTH - (last >= 0xd800 && last < 0xdc00 ? 1 : 0);
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

interface EncodedField {
  readonly field: DescField;
  readonly addField: AddField;
  readonly isNested: boolean;
}

const compiled = new WeakMap<DescMessage, readonly EncodedField[]>();

function fieldsOf(desc: DescMessage): readonly EncodedField[] {
  let fields = compiled.get(desc);
  if (fields === undefined) {
    const nested = nestedFields(desc);
    fields = desc.fields
      .filter((field) => !isInputOnly(field))
      .map((field) => ({ field, addField: compileField(field), isNested: nested.includes(field) }));
    compiled.set(desc, fields);
  }
  return fields;
}
