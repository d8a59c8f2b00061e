import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { createLru } from '../base/lru.ts';

/** A message as it is stored, and its JSON once somebody has asked for it. */
interface CachedMessage {
  readonly schema: DescMessage;
  readonly bytes: Uint8Array;
  readonly message: Message;
  json: string | undefined;
}

/** Some megabytes in all: a usual row takes 3 KB with its message and its JSON. */
const MAX_CACHED = 2_000;
const MAX_BYTES = 2_048;

const byKey = createLru<string, CachedMessage>(MAX_CACHED);
const byMessage = new WeakMap<Message, CachedMessage>();

/**
 * The message in `bytes`, decoded once as long as the same bytes come under the same key. The bytes decide, not a
 * version of them, so that it does not matter who changed a row, or where. Whoever gets the message shares it: it is frozen.
 */
export function decodeCached(schema: DescMessage, key: string, bytes: Uint8Array): Message {
  const known = byKey.get(key);
  if (known !== undefined && known.schema === schema && Buffer.compare(known.bytes, bytes) === 0) return known.message;
  const message = decodeCacheable(schema, bytes);
  const kept = byMessage.get(message);
  if (kept) byKey.set(key, kept);
  return message;
}

/** The message in `bytes`, frozen: for those who keep it themselves, if `isKept` says that it is worth it. */
export function decodeCacheable(schema: DescMessage, bytes: Uint8Array): Message {
  const message = freeze(fromBinary(schema, bytes));
  if (bytes.length <= MAX_BYTES) byMessage.set(message, { schema, bytes, message, json: undefined });
  return message;
}

/** Large ones are not. */
export const isCached = (message: Message): boolean => byMessage.has(message);

/** The encoding of a message, if it is kept. */
export const cachedBytes = (schema: DescMessage, message: Message): Uint8Array | undefined =>
  cachedAs(schema, message)?.bytes;

/** What `encode` makes of a message, which it is asked for once if the message is kept. */
export function cachedJson(schema: DescMessage, message: Message, encode: Encode): string {
  const kept = cachedAs(schema, message);
  if (kept === undefined) return encode(schema, message);
  kept.json ??= encode(schema, message);
  return kept.json;
}

type Encode = (schema: DescMessage, message: Message) => string;

/** A message may also be written as one of another type that looks the same, with other names. */
function cachedAs(schema: DescMessage, message: Message): CachedMessage | undefined {
  const kept = byMessage.get(message);
  return kept?.schema === schema ? kept : undefined;
}

function freeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    // The elements of a byte array cannot be frozen.
    if (typeof inner === 'object' && inner !== null && !ArrayBuffer.isView(inner)) freeze(inner);
  }
  return Object.freeze(value);
}
