/** A load generator for machines without wrk and h2load: as many requests as fit into a time, on keep-alive connections. */
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';

export interface GeneratorTask {
  readonly kind: 'http' | 'grpc';
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Asked for in turn with it; HTTP only. */
  readonly morePaths?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
  readonly body: Uint8Array;
  readonly connections: number;
  /** Per connection; gRPC only. */
  readonly streams: number;
  readonly seconds: number;
}

export interface GeneratorOutcome {
  readonly requests: number;
  readonly failures: number;
  readonly seconds: number;
}

process.on('message', async (task: GeneratorTask) => {
  const started = performance.now();
  const until = started + task.seconds * 1000;
  const run = task.kind === 'http' ? overHttp : overGrpc;
  const counts = await Promise.all(Array.from({ length: task.connections }, () => run(task, until)));
  const seconds = (performance.now() - started) / 1000;
  const sum = (of: (count: Count) => number): number => counts.reduce((total, count) => total + of(count), 0);
  process.send?.({ requests: sum((c) => c.requests), failures: sum((c) => c.failures), seconds });
});

interface Count {
  requests: number;
  failures: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** By hand on the socket: a whole HTTP client would cost more than the server it measures. */
function overHttp(task: GeneratorTask, until: number): Promise<Count> {
  const { host, port, path, morePaths = [], method, headers, body } = task;
  const lines = Object.entries({
    host: `${host}:${port}`,
    ...headers,
    ...(body.length > 0 && { 'content-length': body.length }),
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const requests = [path, ...morePaths].map((one) =>
    Buffer.concat([Buffer.from(`${method} ${one} HTTP/1.1\r\n${head}\r\n`), body]),
  );
  const next = (): Buffer => requests[count.requests % requests.length] as Buffer;
  const count: Count = { requests: 0, failures: 0 };
  return new Promise((resolve) => {
    const socket: Socket = connect({ host, port, noDelay: true }, () => socket.write(next()));
    let pending: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const end = pending.indexOf(HEAD_END);
      if (end < 0) return;
      const answer = pending.toString('latin1', 0, end);
      const length = Number(/content-length: (\d+)/i.exec(answer)?.[1] ?? 0);
      if (pending.length < end + HEAD_END.length + length) return;
      pending = Buffer.alloc(0);
      count.requests++;
      if (!answer.startsWith('HTTP/1.1 2')) count.failures++;
      if (performance.now() < until) socket.write(next());
      else socket.end();
    });
    socket.on('error', () => count.failures++).on('close', () => resolve(count));
  });
}

function overGrpc(task: GeneratorTask, until: number): Promise<Count> {
  const { host, port, path, headers, body, streams } = task;
  const count: Count = { requests: 0, failures: 0 };
  return new Promise((resolve) => {
    const session = connectHttp2(`http://${host}:${port}`);
    let running = streams;
    const next = (): void => {
      if (performance.now() >= until) {
        if (--running === 0) session.close(() => resolve(count));
        return;
      }
      const stream = session.request({
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: path,
        ...headers,
      });
      let isGood = false;
      stream.on('trailers', (trailers) => {
        isGood = trailers['grpc-status'] === '0';
      });
      stream.on('error', () => {}).resume();
      stream.on('close', () => {
        count.requests++;
        if (!isGood) count.failures++;
        next();
      });
      stream.end(body);
    };
    session.on('error', () => resolve(count));
    session.on('connect', () => {
      for (let i = 0; i < streams; i++) next();
    });
  });
}
