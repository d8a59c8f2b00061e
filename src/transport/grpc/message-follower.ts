/** A message whose prefix has just arrived. */
export interface MessageStart {
  readonly isCompressed: boolean;
  readonly length: number;
}

/** Follows the messages in the data of a gRPC request without buffering them. */
export interface MessageFollower {
  /** Whether all messages that have started are complete. */
  readonly isComplete: boolean;
  /** Returns the largest message, or a compressed one, of those that start in this chunk. */
  receive(chunk: Uint8Array): MessageStart | undefined;
}

/** One byte says whether the message is compressed, four its length. */
const PREFIX_BYTES = 5;

export function createMessageFollower(): MessageFollower {
  let prefixBytes = 0;
  let isCompressed = false;
  let length = 0;
  let remaining = 0;
  return {
    get isComplete() {
      return prefixBytes === 0;
    },
    receive(chunk) {
      let started: MessageStart | undefined;
      for (let at = 0; at < chunk.length; ) {
        if (prefixBytes < PREFIX_BYTES) {
          const byte = chunk[at++] ?? 0;
          if (prefixBytes === 0) {
            isCompressed = byte === 1;
            length = 0;
          } else {
            length = length * 256 + byte;
          }
          prefixBytes++;
          if (prefixBytes < PREFIX_BYTES) continue;
          remaining = length;
          started = {
            isCompressed: isCompressed || started?.isCompressed === true,
            length: Math.max(length, started?.length ?? 0),
          };
        } else {
          const skipped = Math.min(remaining, chunk.length - at);
          at += skipped;
          remaining -= skipped;
        }
        if (remaining === 0) prefixBytes = 0;
      }
      return started;
    },
  };
}
