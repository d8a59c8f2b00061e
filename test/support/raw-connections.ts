import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';

/** Opens a TCP connection to the server at `url`. Errors only close it. */
export async function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Opens an HTTP/2 connection to the server at `url`. Errors only close it. */
export async function openHttp2(url: string): Promise<ClientHttp2Session> {
  // The default limit of a client is 10 MB for all that waits to be sent.
  const session = connectHttp2(url, { maxSessionMemory: 1_000 }).on('error', () => {});
  await once(session, 'connect');
  return session;
}

/** A gRPC request of which the test sends each byte itself. */
export interface RawCall {
  readonly stream: ClientHttp2Stream;
  /** The gRPC status, or undefined if the stream is closed without one. */
  readonly status: Promise<number | undefined>;
}

/** Sends the headers of a gRPC request, and `bytes` as the beginning of its body. */
export function startCall(
  session: ClientHttp2Session,
  path: string,
  bytes: Uint8Array,
  headers: Record<string, string> = {},
): RawCall {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const status = new Promise<number | undefined>((resolve) => {
    const read = (received: Record<string, unknown>): void => {
      if (received['grpc-status'] !== undefined) resolve(Number(received['grpc-status']));
    };
    stream.on('response', read).on('trailers', read);
    stream.on('error', () => {}).on('close', () => resolve(undefined));
  });
  stream.resume().write(bytes);
  return { stream, status };
}

/** The beginning of a message that declares `length` bytes, of which `sent` are sent. */
export function messageStart(length: number, sent: number, isCompressed = false): Buffer {
  const bytes = Buffer.alloc(5 + sent, 'a');
  bytes.writeUInt8(isCompressed ? 1 : 0, 0);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}
