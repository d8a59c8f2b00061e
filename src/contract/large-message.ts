import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { type Fields, readField } from './json/fields.ts';

/** A message with more messages in its lists takes more than some milliseconds to encode. */
const MAX_ITEMS = 1_000;
/** The length of a string that takes more than a millisecond to encode. */
export const LARGE_TEXT = 512 * 1024;

/** Whether encoding a message takes so long that it is done in slices. It is cheap for messages without lists. */
export const isLarge = (desc: DescMessage, message: Message): boolean =>
  hasMoreItems(desc, message, MAX_ITEMS) || hasLargeText(desc, message as Fields);

/** Whether the lists of a message have more than `max` messages, at all depths. */
export const hasMoreItems = (desc: DescMessage, message: Message, max: number): boolean =>
  countItems(desc, message as Fields, max) > max;

/** Counts the messages in the lists of a message at all depths, until they are more than `max`. */
function countItems(desc: DescMessage, message: Fields, max: number): number {
  let count = 0;
  for (const field of nestedFields(desc)) {
    const value = readField(message, field);
    if (value === undefined) continue;
    const type = field.message as DescMessage;
    if (field.fieldKind === 'message') {
      count += countItems(type, value as Fields, max - count);
    } else {
      const items = value as readonly Fields[];
      count += items.length;
      if (nestedFields(type).length === 0) continue;
      for (let at = 0; at < items.length && count <= max; at++) {
        count += countItems(type, items[at] as Fields, max - count);
      }
    }
    if (count > max) break;
  }
  return count;
}

/** An optional text that is not set may be undefined. */
const hasLargeText = (desc: DescMessage, message: Fields): boolean =>
  textFields(desc).some((name) => ((message[name] as string | undefined)?.length ?? 0) > LARGE_TEXT);

const nestedCache = new WeakMap<DescMessage, readonly DescField[]>();
const textCache = new WeakMap<DescMessage, readonly string[]>();

/** The fields that are lists of messages, or messages in which there are such lists. */
export function nestedFields(desc: DescMessage): readonly DescField[] {
  let fields = nestedCache.get(desc);
  if (fields === undefined) {
    // For a type that contains itself.
    nestedCache.set(desc, []);
    fields = desc.fields.filter(
      ({ fieldKind, message }) =>
        message !== undefined &&
        (fieldKind === 'list' || (fieldKind === 'message' && nestedFields(message).length > 0)),
    );
    nestedCache.set(desc, fields);
  }
  return fields;
}

function textFields(desc: DescMessage): readonly string[] {
  let names = textCache.get(desc);
  if (names === undefined) {
    names = desc.fields
      .filter(({ scalar, fieldKind, oneof }) => scalar === ScalarType.STRING && fieldKind === 'scalar' && !oneof)
      .map(({ localName }) => localName);
    textCache.set(desc, names);
  }
  return names;
}
