import type { DescMessage } from '@bufbuild/protobuf';
import { mapInSlices, type Slices } from '../../base/slices.ts';
import { isObject, messageReader } from './decode.ts';
import { fieldsByName } from './field-names.ts';
import type { Fields } from './fields.ts';
import type { Violations } from './violations.ts';

/** Reads a message as `messageReader` does, but the items of its lists of messages in slices. */
export async function readMessageInSlices(
  desc: DescMessage,
  json: unknown,
  problems: Violations,
  slices: Slices,
): Promise<Fields | undefined> {
  const read = messageReader(desc);
  if (!isObject(json)) return read(json, '', problems) as Fields | undefined;
  const fields = fieldsByName(desc);
  const lists = Object.entries(json).flatMap(([key, value]) => {
    const field = fields.get(key)?.field;
    return field?.fieldKind === 'list' && field.message && Array.isArray(value) ? [{ key, field, items: value }] : [];
  });
  const withoutItems = { ...json, ...Object.fromEntries(lists.map(({ key }) => [key, []])) };
  const message = read(withoutItems, '', problems) as Fields | undefined;
  if (message === undefined) return undefined;
  for (const { field, items } of lists) {
    const readItem = messageReader(field.message as DescMessage);
    const readAt = (item: unknown, index: number) => readItem(item, `${field.name}[${index}]`, problems);
    message[field.localName] = await mapInSlices(items, readAt, slices);
  }
  return message;
}
