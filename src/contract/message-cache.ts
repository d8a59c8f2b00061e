import { type DescMessage, fromBinary, type Message, type MessageShape } from '@bufbuild/protobuf';
import { createLru } from '../base/lru.ts';

/** A decoded message with its stored encoding, and its JSON after the first request for it. */
interface CachedMessage {
  readonly schema: DescMessage;
  readonly bytes: Uint8Array;
  readonly message: Message;
  json: string | undefined;
  /** What encoded `json`: v1 and v2 have different JSON for the same message. */
  encode: Encode | undefined;
}

/** Some megabytes in total: an average row takes 3 KB with its message and its JSON. */
const MAX_CACHED = 2_000;
const MAX_BYTES = 2_048;

const byKey = createLru<string, CachedMessage>(MAX_CACHED);
const byMessage = new WeakMap<Message, CachedMessage>();

/**
 * Decodes a message, or returns the cached message if the bytes for this key are unchanged. Bytes are compared, not
 * versions, so a change of the row by another process is noticed. The message is frozen, because callers share it.
 */
export function decodeCached<S extends DescMessage>(schema: S, key: string, bytes: Uint8Array): MessageShape<S> {
  const cached = byKey.get(key);
  if (cached !== undefined && cached.schema === schema && Buffer.compare(cached.bytes, bytes) === 0) {
    return cached.message as MessageShape<S>;
  }
  const message = decodeFrozen(schema, bytes);
  const entry = byMessage.get(message);
  if (entry) byKey.set(key, entry);
  return message;
}

/** Decodes and freezes a message for a caller with a cache of its own, which should cache it only if `isCached`. */
export function decodeFrozen<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  const message = freeze(fromBinary(schema, bytes));
  if (bytes.length <= MAX_BYTES) byMessage.set(message, { schema, bytes, message, json: undefined, encode: undefined });
  return message;
}

/** Whether the encoding and the JSON of a message are cached. Those of large messages are not. */
export const isCached = (message: Message): boolean => byMessage.has(message);

/** The cached encoding of a message. */
export const cachedBytes = (schema: DescMessage, message: Message): Uint8Array | undefined =>
  entryFor(schema, message)?.bytes;

/** The cached JSON of a message. The same `encode` is called once for a cached message, and each time for another. */
export function cachedJson(schema: DescMessage, message: Message, encode: Encode): string {
  const entry = entryFor(schema, message);
  if (entry === undefined) return encode(schema, message);
  if (entry.json === undefined || entry.encode !== encode) {
    entry.json = encode(schema, message);
    entry.encode = encode;
  }
  return entry.json;
}

export type Encode = (schema: DescMessage, message: Message) => string;

/**
 * A message may also be encoded as another type with the same fields under other names; its cache entry is not valid
 * then.
 */
function entryFor(schema: DescMessage, message: Message): CachedMessage | undefined {
  const entry = byMessage.get(message);
  return entry?.schema === schema ? entry : undefined;
}

function freeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    // The elements of a byte array cannot be frozen.
    if (typeof inner === 'object' && inner !== null && !ArrayBuffer.isView(inner)) freeze(inner);
  }
  return Object.freeze(value);
}
