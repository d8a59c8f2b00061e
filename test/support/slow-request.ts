import { once } from 'node:events';
import { connect } from 'node:net';

export interface SlowRequest {
  /** Resolves with the status of the response, which may arrive before the request is complete. */
  readonly status: Promise<number>;
  /** Sends the rest of the body. */
  finish(): void;
  /** Resolves when the server has handled the rest of the body, or has closed the connection. */
  handled(): Promise<unknown>;
}

export interface SlowRequestOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/**
 * Sends the headers and the first five bytes of the body, and returns when the server has begun to handle the request: it
 * then sends `100 Continue`. A socket of its own, because HTTP clients stop sending when the response arrives early.
 */
export async function beginSlowRequest(
  url: string,
  { method, headers, body }: SlowRequestOptions,
): Promise<SlowRequest> {
  const { hostname, port, pathname, search, host } = new URL(url);
  const bytes = Buffer.from(body);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  const lines = Object.entries({
    ...headers,
    host,
    expect: '100-continue',
    'content-length': bytes.length,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`);

  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: status, resolve, reject } = Promise.withResolvers<number>();
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => Number(code));
    if (statuses.includes(100)) begin();
    const final = statuses.find((code) => code >= 200);
    if (final !== undefined) resolve(final);
  });
  void closed.then(() => reject(new Error(`the server closed the connection after: ${received}`)));
  status.catch(() => {});
  await Promise.race([begun, status]);
  socket.write(bytes.subarray(0, 5));
  return {
    status,
    finish: () => void socket.write(bytes.subarray(5)),
    handled() {
      // Requests of one connection are handled in order.
      socket.end(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
      return closed;
    },
  };
}
