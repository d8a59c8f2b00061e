import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import type { ListStream } from '../resource/operation.ts';
import type { IncomingCall } from './call.ts';
import { throwIfAbandoned, withDeadline } from './deadline.ts';

export const isListStream = (answer: Message | ListStream): answer is ListStream => Symbol.asyncIterator in answer;

/**
 * Hands over one page after the other and answers the last. The server's limit holds for each of them: how long they take
 * together is up to the client, and one that takes nothing any more is given up.
 */
export async function sendListStream(
  pages: ListStream,
  incoming: IncomingCall,
  limitMs: number,
  clock: Clock,
): Promise<Message> {
  const { method, sendPage } = incoming;
  if (!sendPage) throw new Error(`${method.id} answers in pages, and ${method.desc.output.typeName} cannot be divided`);
  const next = async () => {
    const page = await pages.next();
    if (!page.done) await sendPage(page.value);
    return page;
  };
  try {
    for (;;) {
      const { done, value } = await withDeadline(next(), incoming, limitMs, clock);
      if (done) return value;
      throwIfAbandoned(incoming, clock);
    }
  } finally {
    // Nobody waits for it: what reads a page right now ends with that page.
    void pages.return?.();
  }
}
