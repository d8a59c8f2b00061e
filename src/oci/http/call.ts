import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { BlobReader } from '../../blobs/blobs.ts';
import type { ReadContext } from '../../resource/operation.ts';
import type { Action } from '../auth/scope.ts';

/** The time limit for the arrival of a request body. */
export interface BodyTimeout {
  /** Stops it. The handler then makes sure itself that the body makes progress. */
  suspend(): void;
  /** Starts it again from zero. */
  resume(): void;
  /** Starts it again from zero, with a smaller limit. */
  shorten(limitMs: number): void;
}

/** An authenticated request, as handlers get it. */
export interface OciCall extends ReadContext {
  readonly req: IncomingMessage;
  /** The address of the client. */
  readonly address: string;
  readonly query: URLSearchParams;
  /** The token that was sent, without its scheme. */
  readonly token: string;
  /** Whether the token includes this action. A registry token is restricted to actions on repositories, others are not. */
  tokenAllows(name: string, action: Action): boolean;
  /** The repositories that a registry token names; undefined for other tokens. */
  readonly tokenRepositories: readonly string[] | undefined;
  readonly bodyTimeout: BodyTimeout;
}

/** What a handler returns; it never writes to the socket itself. */
export interface OciResponse {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | string;
  /** Instead of a body: streamed to the client and then closed. */
  readonly reader?: BlobReader;
  /** Called when the last byte was sent, and only then. */
  readonly sent?: () => void;
}

export const json = (status: number, value: unknown, headers: OutgoingHttpHeaders = {}): OciResponse => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});
