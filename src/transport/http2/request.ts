import type { IncomingMessage } from 'node:http';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';

/** What handlers use of a request. */
type UsedRequest = Pick<
  IncomingMessage,
  'headers' | 'method' | 'url' | 'socket' | 'httpVersion' | 'httpVersionMajor' | 'complete'
>;

/**
 * An HTTP/2 request in the form of an HTTP/1.1 request. Node has such a class too, but it ends the body of a request that
 * the client has aborted as if it were complete.
 */
export class Http2Request extends Readable implements UsedRequest {
  readonly httpVersion = '2.0';
  readonly httpVersionMajor = 2;
  readonly headers: IncomingMessage['headers'];
  readonly method: string;
  readonly socket: Socket;
  readonly stream: ServerHttp2Stream;
  url: string;
  /** Whether all of the body has arrived. */
  complete = false;
  readonly #onFirstRead: () => void;
  #isReading = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, socket: Socket, onFirstRead: () => void) {
    super();
    this.stream = stream;
    this.socket = socket;
    this.method = headers[':method'] ?? '';
    this.url = headers[':path'] ?? '';
    this.headers = headers;
    // RFC 9113 section 8.3.1: Host does not count if there is an authority.
    if (headers[':authority'] !== undefined) this.headers.host = headers[':authority'];
    this.#onFirstRead = onFirstRead;
    stream.once('close', () => this.#closed());
  }

  override _read(): void {
    if (this.#isReading) {
      this.stream.resume();
      return;
    }
    this.#isReading = true;
    this.#onFirstRead();
    this.stream
      .on('data', (chunk: Buffer) => {
        if (!this.push(chunk)) this.stream.pause();
      })
      .once('end', () => {
        // A client that resets the stream without an error code ends the body too.
        if (this.stream.aborted) return;
        this.complete = true;
        this.push(null);
      });
  }

  /** Like HTTP/1.1, where the connection is closed: the client gets no response. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.complete && error !== null && !this.stream.destroyed) this.stream.destroy(error);
    // As in Node, an aborted body is an error only for those who read it.
    done(this.listenerCount('error') === 0 ? null : error);
  }

  #closed(): void {
    if (this.complete || this.destroyed) return;
    if (this.#isReading) this.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
    else this.destroy();
  }
}
