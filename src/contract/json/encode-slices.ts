import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { startSlices } from '../../base/slices.ts';
import { isInputOnly } from '../field-behavior.ts';
import { hasMoreItems, LARGE_TEXT, nestedFields } from '../large-message.ts';
import { type AddField, compileField, encodeJson, type ResponseForm } from './encode.ts';
import { toLatin1 } from './encode-latin1.ts';
import { type Fields, readField } from './fields.ts';

/** Pieces of text are joined to parts of this length, and the parts at the end. */
const PART_LENGTH = 64 * 1024;
/** A message with at most this many messages in its lists is one piece. */
const PIECE_ITEMS = 50;

/** The JSON of a large message as Latin-1, as `encodeJsonLatin1` encodes it, but in slices. */
export const encodeJsonLatin1InSlices = (
  desc: DescMessage,
  message: Message,
  form: ResponseForm = 'v2',
): Promise<string> => encodeJsonInSlices(desc, message, form, toLatin1);

/** The JSON of a large message, as `encodeJson` encodes it, but in slices. `convert` converts each part of the text. */
export async function encodeJsonInSlices(
  desc: DescMessage,
  message: Message,
  form: ResponseForm = 'v2',
  convert: (part: string) => string = (part) => part,
): Promise<string> {
  const slices = startSlices();
  const parts: string[] = [];
  let part = '';
  for (const piece of pieces(desc, message as Fields, form)) {
    part += piece;
    if (part.length < PART_LENGTH) continue;
    parts.push(convert(part));
    part = '';
    if (slices.isOver()) await slices.next();
  }
  parts.push(convert(part));
  return parts.join('');
}

function* pieces(desc: DescMessage, message: Fields, form: ResponseForm): Generator<string, void> {
  let separator = '{';
  for (const { field, addField, isNested } of fieldsOf(desc, form)) {
    const { jsonName, fieldKind, message: type } = field;
    const value = readField(message, field);
    if (isNested && fieldKind === 'list' && (value as readonly Fields[]).length > 0) {
      yield `${separator}"${jsonName}":[`;
      yield* listPieces(type as DescMessage, value as readonly Fields[], form);
      yield ']';
    } else if (isNested && fieldKind === 'message' && value !== undefined) {
      yield `${separator}"${jsonName}":`;
      yield* messagePieces(type as DescMessage, value as Fields, form);
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

function* listPieces(type: DescMessage, items: readonly Fields[], form: ResponseForm): Generator<string, void> {
  for (const [index, item] of items.entries()) {
    if (index > 0) yield ',';
    yield* messagePieces(type, item, form);
  }
}

function* messagePieces(type: DescMessage, message: Fields, form: ResponseForm): Generator<string, void> {
  if (hasMoreItems(type, message, PIECE_ITEMS)) yield* pieces(type, message, form);
  else yield encodeJson(type, message, form);
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

const compiled = {
  v2: new WeakMap<DescMessage, readonly EncodedField[]>(),
  v1: new WeakMap<DescMessage, readonly EncodedField[]>(),
};

function fieldsOf(desc: DescMessage, form: ResponseForm): readonly EncodedField[] {
  let fields = compiled[form].get(desc);
  if (fields === undefined) {
    const nested = nestedFields(desc);
    fields = desc.fields
      .filter((field) => !isInputOnly(field))
      .map((field) => ({ field, addField: compileField(field, form), isNested: nested.includes(field) }));
    compiled[form].set(desc, fields);
  }
  return fields;
}
