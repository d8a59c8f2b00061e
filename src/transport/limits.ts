/** Limits for unauthenticated clients. */
export interface Limits {
  /** The total size of the headers of one request. */
  readonly headerBytes: number;
  /** The time for the TLS handshake, for the first bytes of a connection, and for the headers of each request. */
  readonly headersMs: number;
  /** The time for a whole request to arrive, including its body. */
  readonly requestMs: number;
  /** The time for a whole request to arrive whose caller is not authenticated before it is read. */
  readonly publicRequestMs: number;
  /** The size of a request body or message whose caller is not authenticated before it is read. */
  readonly publicRequestBytes: number;
  /** The time between two requests. Load balancers use 60 s; with a longer limit the server never closes first. */
  readonly idleMs: number;
  /** How long a client may read nothing while bytes for it are waiting. */
  readonly unreadMs: number;
  /** HTTP/1.1 requests of one connection that wait for the response before them. */
  readonly pipelinedRequests: number;
  /** Open connections in total. */
  readonly connections: number;
  /** Open connections of one IPv4 address or one /64 network of IPv6. */
  readonly connectionsPerAddress: number;
  /** Memory for requests of all connections that are not yet authenticated. */
  readonly unauthenticatedBytes: number;
  /** The same for one gRPC connection. A compressed message of 4 MiB and its stream fit. */
  readonly unauthenticatedConnectionBytes: number;
}

const MIB = 2 ** 20;

export const defaultLimits: Limits = {
  headerBytes: 64 * 1024,
  headersMs: 10_000,
  requestMs: 300_000,
  publicRequestMs: 30_000,
  publicRequestBytes: 64 * 1024,
  idleMs: 75_000,
  unreadMs: 60_000,
  pipelinedRequests: 100,
  connections: 10_000,
  connectionsPerAddress: 5_000,
  unauthenticatedBytes: 16 * MIB,
  unauthenticatedConnectionBytes: 5 * MIB,
};

/** Connections that the operating system queues until they are accepted. Beyond it, a client retries after a second. */
export const BACKLOG = 4096;
