import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type pg from 'pg';

// COPY transfers whole tables as text, many times faster than INSERT and SELECT. The driver has the messages of the
// protocol but no interface for them, except that of a query object of one's own.

/** The part of the driver's connection that COPY uses. */
interface WireConnection {
  readonly stream: Duplex;
  query(text: string): void;
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

/** The methods of a query that the driver calls. */
interface WireQuery {
  submit(connection: WireConnection): void;
  handleCopyData(message: { readonly chunk: Buffer }, connection: WireConnection): void;
  handleCopyInResponse(connection: WireConnection): void;
  handleCommandComplete(message: { readonly text: string }): void;
  handleReadyForQuery(): void;
  handleError(error: Error): void;
}

/** The driver delivers one chunk per row. They are joined up to this size. */
const CHUNK_BYTES = 64 * 1024;
/** When this much has not been consumed, nothing more is read from the connection. */
const QUEUE_BYTES = 1024 * 1024;

/** Runs `COPY … TO STDOUT` and yields its text. The client must not be used until all was read. */
export async function* copyOut(client: pg.ClientBase, sql: string): AsyncGenerator<Uint8Array, number> {
  const queue: Buffer[] = [];
  let rows: Buffer[] = [];
  let rowBytes = 0;
  let queued = 0;
  let count = 0;
  let failure: Error | undefined;
  let isDone = false;
  let wake = (): void => {};
  let stream: Duplex | undefined;
  const flush = (): void => {
    if (rowBytes > 0) queue.push(Buffer.concat(rows));
    rows = [];
    rowBytes = 0;
    wake();
  };
  submit(client, {
    submit(connection) {
      stream = connection.stream;
      connection.query(sql);
    },
    handleCopyData({ chunk }, connection) {
      // The driver uses the memory of the chunk again.
      rows.push(Buffer.from(chunk));
      rowBytes += chunk.length;
      queued += chunk.length;
      if (rowBytes >= CHUNK_BYTES) flush();
      if (queued > QUEUE_BYTES) connection.stream.pause();
    },
    handleCopyInResponse: (connection) => connection.sendCopyFail('the statement must copy to STDOUT'),
    handleCommandComplete: ({ text }) => {
      count = countIn(text);
    },
    handleReadyForQuery() {
      isDone = true;
      flush();
    },
    handleError(error) {
      failure = error;
      wake();
    },
  });
  for (;;) {
    const chunk = queue.shift();
    if (chunk !== undefined) {
      queued -= chunk.length;
      if (queued <= QUEUE_BYTES) stream?.resume();
      yield chunk;
      continue;
    }
    if (failure !== undefined) throw failure;
    if (isDone) return count;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}

/** Runs `COPY … FROM STDIN` with the text of `source` and returns the number of rows. */
export function copyIn(client: pg.ClientBase, sql: string, source: AsyncIterable<Uint8Array>): Promise<number> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let failure: unknown;
    async function send(connection: WireConnection): Promise<void> {
      try {
        for await (const chunk of source) {
          // After an error the database discards everything up to the end of the statement.
          if (failure !== undefined) return;
          connection.sendCopyFromChunk(chunk);
          if (connection.stream.writableNeedDrain) await once(connection.stream, 'drain');
        }
        connection.endCopyFrom();
      } catch (error) {
        failure ??= error;
        connection.sendCopyFail('the source of the rows failed');
      }
    }
    submit(client, {
      submit: (connection) => connection.query(sql),
      handleCopyInResponse: (connection) => void send(connection),
      handleCopyData: () => {},
      handleCommandComplete: ({ text }) => {
        count = countIn(text);
      },
      handleReadyForQuery: () => resolve(count),
      // The driver does not call handleReadyForQuery after an error.
      handleError(error) {
        failure ??= error;
        reject(failure);
      },
    });
  });
}

const submit = (client: pg.ClientBase, query: WireQuery): void => void client.query(query as unknown as pg.Submittable);

/** Returns 3 for `COPY 3`. */
const countIn = (tag: string): number => Number(tag.split(' ').at(-1));
