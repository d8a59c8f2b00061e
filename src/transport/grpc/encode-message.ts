import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { encodeInSlices } from '../../contract/binary-slices.ts';
import { isLarge } from '../../contract/large-message.ts';
import { cachedBytes } from '../../contract/message-cache.ts';

/** Encodes a response message, a large one in slices. */
export function encodeMessage(type: DescMessage, message: Message): MaybePromise<Buffer> {
  if (isLarge(type, message)) return encodeInSlices(type, message);
  const bytes = cachedBytes(type, message) ?? toBinary(type, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
