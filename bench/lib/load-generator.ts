/** A load generator for machines without wrk and h2load. It sends requests on keep-alive connections. */
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';

export interface LoadTask {
  readonly kind: 'http' | 'grpc';
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Requested in turn with `path`. HTTP only. */
  readonly morePaths?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
  readonly body: Uint8Array;
  /** Of the same length, sent in turn with `body`. HTTP only. */
  readonly moreBodies?: readonly Uint8Array[];
  readonly connections: number;
  /** Concurrent streams per connection. gRPC only. */
  readonly streams: number;
  /** When to stop: after a time, or after a number of requests of all connections together. */
  readonly until: { readonly seconds: number } | { readonly requests: number };
}

export interface LoadOutcome {
  readonly requests: number;
  readonly failures: number;
  readonly seconds: number;
}

process.on('message', async (task: LoadTask) => {
  const started = performance.now();
  const mayContinue = createLimit(task.until, started);
  const run = task.kind === 'http' ? overHttp : overGrpc;
  const counts = await Promise.all(Array.from({ length: task.connections }, () => run(task, mayContinue)));
  const seconds = (performance.now() - started) / 1000;
  const sum = (of: (count: RequestCount) => number): number => counts.reduce((total, count) => total + of(count), 0);
  process.send?.({ requests: sum((c) => c.requests), failures: sum((c) => c.failures), seconds });
});

interface RequestCount {
  requests: number;
  failures: number;
}

/** Returns a function that tells whether a connection may send another request. */
function createLimit(until: LoadTask['until'], started: number): () => boolean {
  if ('seconds' in until) {
    const deadline = started + until.seconds * 1000;
    return () => performance.now() < deadline;
  }
  let remaining = until.requests;
  return () => remaining-- > 0;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** Writes to the socket directly, because an HTTP client would use more processor time than the measured server. */
function overHttp(task: LoadTask, mayContinue: () => boolean): Promise<RequestCount> {
  const { host, port, path, morePaths = [], method, headers, body, moreBodies = [] } = task;
  const allHeaders = Object.entries({
    host: `${host}:${port}`,
    ...headers,
    ...(body.length > 0 && { 'content-length': body.length }),
  });
  const head = allHeaders.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const requests = [path, ...morePaths].flatMap((each) =>
    [body, ...moreBodies].map((content) =>
      Buffer.concat([Buffer.from(`${method} ${each} HTTP/1.1\r\n${head}\r\n`), content]),
    ),
  );
  const nextRequest = (): Buffer => requests[count.requests % requests.length] as Buffer;
  const count: RequestCount = { requests: 0, failures: 0 };
  return new Promise((resolve) => {
    const socket: Socket = connect({ host, port, noDelay: true }, () => socket.write(nextRequest()));
    let pending: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const end = pending.indexOf(HEAD_END);
      if (end < 0) return;
      const responseHead = pending.toString('latin1', 0, end);
      const length = Number(/content-length: (\d+)/i.exec(responseHead)?.[1] ?? 0);
      if (pending.length < end + HEAD_END.length + length) return;
      pending = Buffer.alloc(0);
      count.requests++;
      if (!responseHead.startsWith('HTTP/1.1 2')) count.failures++;
      if (mayContinue()) socket.write(nextRequest());
      else socket.end();
    });
    socket.on('error', () => count.failures++).on('close', () => resolve(count));
  });
}

function overGrpc(task: LoadTask, mayContinue: () => boolean): Promise<RequestCount> {
  const { host, port, path, headers, body, streams } = task;
  const count: RequestCount = { requests: 0, failures: 0 };
  return new Promise((resolve) => {
    const session = connectHttp2(`http://${host}:${port}`);
    let openStreams = streams;
    const sendNext = (): void => {
      if (!mayContinue()) {
        if (--openStreams === 0) session.close(() => resolve(count));
        return;
      }
      const stream = session.request({
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: path,
        ...headers,
      });
      let isOk = false;
      stream.on('trailers', (trailers) => {
        isOk = trailers['grpc-status'] === '0';
      });
      stream.on('error', () => {}).resume();
      stream.on('close', () => {
        count.requests++;
        if (!isOk) count.failures++;
        sendNext();
      });
      stream.end(body);
    };
    session.on('error', () => resolve(count));
    session.on('connect', () => {
      for (let i = 0; i < streams; i++) sendNext();
    });
  });
}
