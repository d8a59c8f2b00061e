import { EventEmitter } from 'node:events';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';

/** What handlers use of a response. */
type UsedResponse = Pick<ServerResponse, 'headersSent' | 'destroyed' | 'writableFinished' | 'statusCode'>;

type Written = (error?: Error | null) => void;

/**
 * An HTTP/2 response in the form of an HTTP/1.1 response: 'finish' follows when the last byte is sent, then 'close'. Node
 * has such a class too, but it emits 'finish' also when the client disconnects.
 */
export class Http2Response extends EventEmitter implements UsedResponse {
  statusCode = 200;
  readonly #stream: ServerHttp2Stream;
  readonly #headers: OutgoingHttpHeaders = {};
  readonly #unreadMs: number;
  #isEnded = false;
  #isFinished = false;
  #hasTimeout = false;

  /** A client may read nothing for `unreadMs` while bytes are waiting. */
  constructor(stream: ServerHttp2Stream, unreadMs: number) {
    super();
    this.#stream = stream;
    this.#unreadMs = unreadMs;
    stream.on('drain', () => this.emit('drain'));
    stream.once('close', () => this.emit('close'));
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  get writableFinished(): boolean {
    return this.#isFinished;
  }

  setHeader(name: string, value: string | number | readonly string[]): this {
    this.#headers[name.toLowerCase()] = value as string;
    return this;
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.statusCode = status;
    if (this.destroyed) return this;
    for (const name of Object.keys(headers)) this.#headers[name.toLowerCase()] = headers[name];
    this.#stream.respond({ ...this.#headers, ':status': status });
    return this;
  }

  write(chunk: string | Uint8Array, written?: Written): boolean {
    const stream = this.#stream;
    if (!stream.headersSent) this.writeHead(this.statusCode);
    if (this.destroyed) {
      if (written) process.nextTick(written, new Error('the stream is closed'));
      return false;
    }
    if (stream.writableEnded) {
      // A response to HEAD, or one that has no body by its status.
      if (written) process.nextTick(written);
      return true;
    }
    this.#limitUnread();
    return stream.write(chunk, written);
  }

  end(chunk: string | Uint8Array = '', encoding: BufferEncoding = 'utf8'): this {
    const stream = this.#stream;
    if (this.#isEnded) return this;
    this.#isEnded = true;
    if (!stream.headersSent) this.writeHead(this.statusCode);
    if (this.destroyed) return this;
    if (stream.writableEnded) {
      process.nextTick(() => this.#finish());
      return this;
    }
    stream.once('finish', () => this.#finish());
    if (chunk.length === 0) stream.end();
    else {
      this.#limitUnread();
      stream.end(chunk, encoding);
    }
    return this;
  }

  /** Resets the stream, so that the client sees that the response is incomplete. `close` would end the body first. */
  destroy(): this {
    if (!this.#stream.destroyed) this.#stream.destroy(new Error('the response is incomplete'));
    return this;
  }

  setTimeout(ms: number, onTimeout: () => void): this {
    this.#hasTimeout = true;
    this.#stream.setTimeout(ms, onTimeout);
    return this;
  }

  /** HTTP/2 keeps what the client does not read in the stream, so that nothing waits in the connection. */
  #limitUnread(): void {
    if (this.#hasTimeout) return;
    this.setTimeout(this.#unreadMs, () => {
      if (this.#stream.bufferSize > 0) this.destroy();
    });
  }

  #finish(): void {
    const stream = this.#stream;
    if (this.#isFinished || stream.aborted) return;
    this.#isFinished = true;
    this.emit('finish');
    // The response is complete, so the client need not send the rest of the request: RFC 9113 section 8.1.
    if (!stream.readableEnded && !stream.endAfterHeaders && !stream.closed) stream.close(NO_ERROR);
  }
}

/** RFC 9113 section 7. */
const NO_ERROR = 0;
