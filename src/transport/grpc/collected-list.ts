import type { DescMessage, Message } from '@bufbuild/protobuf';
import { ApiError, Code } from '../../base/errors.ts';
import { chain, type MaybePromise } from '../../base/maybe-promise.ts';
import { encodeMessage } from './encode-message.ts';

/** A response that the pipeline produces in parts and gRPC sends as one message. */
export interface CollectedList {
  add(part: Message): MaybePromise<void>;
  /** Returns the encoding of the whole message, including the last part. */
  end(last: Message): MaybePromise<Buffer>;
}

/**
 * Collects the encoded parts, because gRPC sends the length of a message before its first byte. Throws
 * RESOURCE_EXHAUSTED when they exceed `maxBytes`.
 */
export function collectList(type: DescMessage, maxBytes: number): CollectedList {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  function append(encoded: Uint8Array): void {
    bytes += encoded.byteLength;
    if (bytes > maxBytes) throw tooLong(maxBytes);
    parts.push(encoded);
  }
  return {
    add: (part) => chain(encodeMessage(type, part), append),
    end: (last) =>
      chain(encodeMessage(type, last), (encoded) => {
        // Not checked against the limit, because the call has already succeeded.
        parts.push(encoded);
        // The array is emptied to free the parts, because grpc-js copies the result.
        return Buffer.concat(parts.splice(0));
      }),
  };
}

const tooLong = (maxBytes: number): ApiError =>
  new ApiError(
    Code.RESOURCE_EXHAUSTED,
    `Resource exhausted: the list exceeds ${maxBytes / 1024 / 1024} MiB, the limit for one gRPC message; narrow the filter, use the paged List method of v2, or use REST`,
  );
