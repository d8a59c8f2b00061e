/** Limits for unauthenticated clients. */
export interface Limits {
  /** The total size of the headers of one request. */
  readonly headerBytes: number;
  /** The time for the TLS handshake, for the first bytes of a connection, and for the headers of each request. */
  readonly headersMs: number;
  /** The time for a whole request to arrive, including its body. */
  readonly requestMs: number;
  /** The time between two requests. Load balancers use 60 s; with a longer limit the server never closes first. */
  readonly idleMs: number;
}

export const defaultLimits: Limits = {
  headerBytes: 64 * 1024,
  headersMs: 10_000,
  requestMs: 300_000,
  idleMs: 75_000,
};

/** Connections that the operating system queues until they are accepted. Beyond it, a client retries after a second. */
export const BACKLOG = 4096;
