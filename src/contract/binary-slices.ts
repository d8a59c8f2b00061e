import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  type MessageShape,
  mergeFromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import { startSlices } from '../base/slices.ts';
import { binaryParts } from './binary-values.ts';

const PART_BYTES = 16 * 1024;
const PART_ITEMS = 100;

/** Decodes a message in slices. A single field, such as one item of a list, is never divided. */
export async function decodeInSlices<S extends DescMessage>(schema: S, bytes: Uint8Array): Promise<MessageShape<S>> {
  const message = create(schema);
  const slices = startSlices();
  for (const part of binaryParts(bytes, PART_BYTES)) {
    if (slices.isOver()) await slices.next();
    mergeFromBinary(schema, message, part, { readUnknownFields: false });
  }
  return message;
}

/** Encodes a message in slices. A single item of a list is never divided. */
export async function encodeInSlices(schema: DescMessage, message: Message): Promise<Buffer> {
  const slices = startSlices();
  const lists = schema.fields.filter(isListOfMessages).map(({ localName }) => localName);
  const withoutLists = { ...message, ...Object.fromEntries(lists.map((name) => [name, []])) };
  // The concatenated encodings of several messages are the encoding of the merged message.
  const parts = [toBinary(schema, withoutLists)];
  for (const name of lists) {
    const items = (message as unknown as Record<string, readonly Message[]>)[name] ?? [];
    for (let at = 0; at < items.length; ) {
      if (slices.isOver()) await slices.next();
      const end = endOfPart(items, at);
      parts.push(toBinary(schema, create(schema, { [name]: items.slice(at, end) } as never)));
      at = end;
    }
  }
  return Buffer.concat(parts);
}

/** The index after the items that are encoded together: some plain ones, or one that has lists itself. */
function endOfPart(items: readonly Message[], start: number): number {
  const hasLists = (item: Message | undefined): boolean =>
    item !== undefined && Object.values(item).some((value) => Array.isArray(value) && value.length > 10);
  let end = start + 1;
  while (end < items.length && end - start < PART_ITEMS && !hasLists(items[end])) end++;
  return end;
}

const isListOfMessages = ({ fieldKind, message }: DescField): boolean => fieldKind === 'list' && message !== undefined;
