/** What a client may cost us before it has proven anything. */
export interface Limits {
  /** All headers of one request together. */
  readonly headerBytes: number;
  /** From the connection to its first request, for the TLS handshake, and for the headers of each request. */
  readonly headersMs: number;
  /** For a whole request to arrive, body included. */
  readonly requestMs: number;
  /** Between two requests. Longer than a load balancer keeps a connection (60 s), so that it closes first, never we. */
  readonly idleMs: number;
}

export const defaultLimits: Limits = {
  headerBytes: 64 * 1024,
  headersMs: 10_000,
  requestMs: 300_000,
  idleMs: 75_000,
};

/** Connections the system may hold until we accept them; of a burst beyond it, each waits a second to try again. */
export const BACKLOG = 4096;
