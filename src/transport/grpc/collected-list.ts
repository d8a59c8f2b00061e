import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { ApiError, Code } from '../../base/errors.ts';

/** An answer that comes in pages and leaves as one message. */
export interface CollectedPages {
  add(page: Message): void;
  /** The whole message, with its last page. */
  end(last: Message): Buffer;
}

/**
 * gRPC says how long a message is before it sends the first byte, so all pages must be there by then. What is held of them is
 * their encoding alone, and no more than `maxBytes` of it.
 */
export function collectPages(type: DescMessage, maxBytes: number): CollectedPages {
  const pages: Uint8Array[] = [];
  let bytes = 0;
  return {
    add(page) {
      const encoded = toBinary(type, page);
      bytes += encoded.byteLength;
      if (bytes > maxBytes) throw tooLong(maxBytes);
      pages.push(encoded);
    },
    end(last) {
      // The call is over and counted as a success: one page more is no reason to refuse it now.
      pages.push(toBinary(type, last));
      // Emptied, since the library makes a copy of its own next.
      return Buffer.concat(pages.splice(0));
    },
  };
}

const tooLong = (maxBytes: number): ApiError =>
  new ApiError(
    Code.RESOURCE_EXHAUSTED,
    `Resource exhausted: the list takes more than ${maxBytes / 1024 / 1024} MiB, which is the most for one gRPC message; narrow the filter, read pages of v2, or read it over REST`,
  );
