import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { BlobReader } from '../../blobs/blobs.ts';
import type { Credential } from '../auth/credentials.ts';

/** The clock that runs while the body of a request arrives. */
export interface Arrival {
  /** Stops it: whoever reads the body from here on sees to it that the body makes progress. */
  suspend(): void;
  /** Starts it anew. */
  resume(): void;
}

/** A request of somebody who is known, as handlers see it. */
export interface Call {
  readonly req: IncomingMessage;
  readonly query: URLSearchParams;
  readonly credential: Credential;
  /** The time of this call in milliseconds: every timestamp that it writes is the same. */
  readonly now: number;
  readonly arrival: Arrival;
}

/** What a handler answers; it never touches the socket itself. */
export interface Answer {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | string;
  /** Instead of a body: sent piece by piece, then released. */
  readonly reader?: BlobReader;
  /** Done when the last byte is out, and only then. */
  readonly sent?: () => void;
}

export const json = (status: number, value: unknown, headers: OutgoingHttpHeaders = {}): Answer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});
