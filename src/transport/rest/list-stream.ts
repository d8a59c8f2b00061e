import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import type { ListJsonStream } from '../../contract/streamed-list.ts';

/** A response that is sent while the list is still being read. */
export interface ListResponseStream {
  /** Writes a part, and before the first part the headers. Resolves when the write buffer has drained. */
  send(part: Message): Promise<void>;
  end(last: Message): Promise<void>;
}

export function streamListResponse(
  res: ServerResponse,
  json: ListJsonStream,
  head: () => OutgoingHttpHeaders,
): ListResponseStream {
  return {
    async send(part) {
      // The client has disconnected. The call is aborted too.
      if (res.destroyed) return;
      if (!res.headersSent) res.writeHead(200, { ...head(), 'content-type': 'application/json' });
      if (!res.write(await json.next(part))) await drained(res);
    },
    async end(last) {
      res.end(await json.end(last));
    },
  };
}

/** Resolves when the write buffer has drained or the connection is closed. */
function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      res.off('drain', settle).off('close', settle);
      resolve();
    };
    res.on('drain', settle).on('close', settle);
  });
}
