import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { cachedJson, type Encode } from '../message-cache.ts';
import { encodeJson, isPageItems, type ResponseForm } from './encode.ts';
import type { Fields } from './fields.ts';

// A Latin-1 string has one character for each byte of the UTF-8 encoding. Node writes it to a socket by copying.

/**
 * The JSON of a message as Latin-1. Messages that come from the message cache are encoded once, also as items of a
 * page.
 */
export function encodeJsonLatin1(desc: DescMessage, message: Message, form: ResponseForm = 'v2'): string {
  const encode = encodeUncached[form];
  const items = pageItemsOf(desc);
  return items ? encodePage(desc, items, message as Fields, encode) : cachedJson(desc, message, encode);
}

const encodeUncached: Readonly<Record<ResponseForm, Encode>> = {
  v2: (desc, message) => toLatin1(encodeJson(desc, message, 'v2')),
  v1: (desc, message) => toLatin1(encodeJson(desc, message, 'v1')),
};

/** Most texts are ASCII, for which Latin-1 and UTF-8 are the same. */
export const toLatin1 = (text: string): string =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');

/** Encodes the page without its items, and then inserts the cached JSON of each item. */
function encodePage(
  desc: DescMessage,
  { jsonName, localName, message: itemDesc }: PageItems,
  page: Fields,
  encode: Encode,
): string {
  const envelope = encode(desc, { ...page, [localName]: [] } as never);
  const listStart = `"${jsonName}":[`;
  // The first match is the list itself: inside a string, a quote has a backslash before it.
  const insertAt = envelope.indexOf(`${listStart}]`) + listStart.length;
  const items = (page[localName] as readonly Message[]).map((item) => cachedJson(itemDesc, item, encode));
  return envelope.slice(0, insertAt) + items.join(',') + envelope.slice(insertAt);
}

type PageItems = DescField & { readonly fieldKind: 'list'; readonly message: DescMessage };

/** Null for a message that is not a page. */
const pageItemsCache = new WeakMap<DescMessage, PageItems | null>();

function pageItemsOf(desc: DescMessage): PageItems | null {
  const cached = pageItemsCache.get(desc);
  if (cached !== undefined) return cached;
  const items = (desc.fields.find(isPageItems) ?? null) as PageItems | null;
  pageItemsCache.set(desc, items);
  return items;
}
