import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import type { ListStream } from '../resource/operation.ts';
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
