import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { streamListJson } from '../../contract/streamed-list.ts';

/** An answer that goes out while it is still read. */
export interface PageStream {
  /** Writes a page, with the head of the answer before the first, and settles when the client has taken most of it. */
  send(page: Message): Promise<void>;
  end(last: Message): void;
}

export function createPageStream(
  res: ServerResponse,
  type: DescMessage,
  list: DescField,
  head: () => OutgoingHttpHeaders,
): PageStream {
  const json = streamListJson(type, list);
  return {
    async send(page) {
      // The client is gone, as the call will notice too.
      if (res.destroyed) return;
      if (!res.headersSent) res.writeHead(200, { ...head(), 'content-type': 'application/json' });
      if (!res.write(json.next(page))) await room(res);
    },
    end: (last) => void res.end(json.end(last)),
  };
}

/** Settles when there is room for more, or nobody left to need it. */
function room(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      res.off('drain', settle).off('close', settle);
      resolve();
    };
    res.on('drain', settle).on('close', settle);
  });
}
