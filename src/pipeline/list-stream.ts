import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { ListStream, ReadContext } from '../resource/operation.ts';
import type { IncomingCall } from './call.ts';
import { throwIfAbandoned, withDeadline } from './deadline.ts';

export const isListStream = (answer: Message | ListStream): answer is ListStream => Symbol.asyncIterator in answer;

/**
 * Sends one part after the other and returns the last. The server's time limit holds for each part, not for all of them:
 * the total depends on how fast the client reads. A client that stops reading runs into the limit.
 */
export async function sendListStream(
  stream: ListStream,
  incoming: IncomingCall,
  limitMs: number,
  clock: Clock,
): Promise<Message> {
  const { method, sendPart } = incoming;
  if (!sendPart) throw new Error(`${method.id} streams its response, but ${method.desc.output.typeName} is no list`);
  const next = async () => {
    const part = await stream.next();
    if (!part.done) await sendPart(part.value);
    return part;
  };
  try {
    for (;;) {
      const { done, value } = await withDeadline(next(), incoming, limitMs, clock);
      if (done) return value;
      throwIfAbandoned(incoming, clock);
    }
  } finally {
    // Not awaited: a part that is being read now still completes.
    void stream.return?.();
  }
}

/** Ends a list when the access of its caller changes: a client may read its parts for as long as it likes. */
export async function* endWithAccess(stream: ListStream, { caller, db }: ReadContext): ListStream {
  try {
    for (;;) {
      const { done, value } = await stream.next();
      if (done) return value;
      yield value;
      if ((await caller.current(db)) !== caller) {
        throw new ApiError(Code.ABORTED, 'Aborted: your access changed while the list was sent; list again');
      }
    }
  } finally {
    void stream.return?.();
  }
}
