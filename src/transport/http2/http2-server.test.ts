import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import { buffer, text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import type { BodyTimeout } from '../body-timeout.ts';
import { defaultLimits } from '../limits.ts';
import { grpcClient, PING, startServer, type TestServerOptions, tlsPair } from '../server.testing.ts';

type Handler = (req: IncomingMessage, res: ServerResponse, bodyTimeout: BodyTimeout) => void;

/** A server and a client with one HTTP/2 connection. */
async function start(t: TestContext, http: Handler, options: TestServerOptions = {}) {
  const server = await startServer(t, { ...options, http: http as NonNullable<TestServerOptions['http']> });
  const url = `${options.tls ? 'https' : 'http'}://localhost:${server.port}`;
  const session = connect(url, options.tls ? { ca: tlsPair.cert } : {}).on('error', () => {});
  t.after(() => session.destroy());
  await once(session, 'connect');
  return { ...server, session };
}

async function send(session: ClientHttp2Session, headers: object, body?: string | Buffer) {
  const stream = session.request({ ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [response] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  return { status: response[':status'], headers: response, body: (await buffer(stream)).toString() };
}

/** Responds with what it has received. */
const echo: Handler = (req, res) => {
  text(req).then(
    (body) => res.writeHead(200, { 'content-type': 'text/plain' }).end(`${req.method} ${req.url} ${body}`),
    () => res.destroy(),
  );
};

for (const tls of [false, true]) {
  test(`REST and gRPC share a connection: ${tls ? 'TLS' : 'plaintext'}`, async (t) => {
    const { session, port } = await start(t, echo, { tls });
    assert.equal((await send(session, { ':path': '/a?b' })).body, 'GET /a?b ');
    const grpc = { ':method': 'POST', ':path': PING, 'content-type': 'application/grpc+proto', te: 'trailers' };
    const call = session.request(grpc);
    call.end(Buffer.alloc(5)).resume();
    const [trailers] = await once(call, 'trailers');
    assert.equal(trailers['grpc-status'], '0');
    const web = { ':method': 'POST', ':path': PING, 'content-type': 'application/grpc-web' };
    assert.equal((await send(session, web, 'x')).body, `POST ${PING} x`, 'gRPC-Web is not gRPC');
    assert.equal(await grpcClient(t, `localhost:${port}`, { tls }).ping(), 'pong');
  });
}

test('a body needs no length, and may be empty, large or slow', async (t) => {
  const { session } = await start(t, (req, res) => void buffer(req).then((bytes) => res.end(`${bytes.length}`)));
  const post = { ':method': 'POST', ':path': '/' };
  assert.equal((await send(session, post)).body, '0');
  assert.equal((await send(session, post, '')).body, '0');
  assert.equal((await send(session, post, Buffer.alloc(3_000_000))).body, '3000000');
  assert.equal((await send(session, { ...post, 'content-length': 3 }, 'abc')).body, '3');
  const slow = session.request(post);
  slow.write('abc');
  await new Promise(setImmediate);
  slow.end('def');
  assert.equal(await text(slow), '6');
});

for (const [name, abort] of [
  ['resets', (stream: ClientHttp2Stream) => stream.destroy(new Error('reset'))],
  ['loses with its connection', (stream: ClientHttp2Stream) => stream.session?.destroy()],
] as const) {
  test(`a body that the client ${name} is not complete`, async (t) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const arrived = Promise.withResolvers<void>();
    const { session } = await start(t, (req) => {
      text(req).then(
        () => resolve('complete'),
        () => resolve('aborted'),
      );
      req.once('data', () => arrived.resolve());
    });
    const stream = session.request({ ':method': 'POST', ':path': '/' }).on('error', () => {});
    stream.write('{"a":1}');
    await arrived.promise;
    abort(stream);
    assert.equal(await promise, 'aborted');
  });
}

test('a handler sees that the client has disconnected', async (t) => {
  const closed = Promise.withResolvers<boolean>();
  const started = Promise.withResolvers<void>();
  const { session } = await start(t, (_, res) => {
    res.once('close', () => closed.resolve(res.writableFinished));
    started.resolve();
  });
  session.request({ ':path': '/' }).on('error', () => {});
  await started.promise;
  session.destroy();
  assert.equal(await closed.promise, false);
});

test('responses without a body: HEAD, 204 and 304', async (t) => {
  const finished: string[] = [];
  const { session } = await start(t, (req, res) => {
    res.once('finish', () => finished.push(req.url ?? ''));
    res.writeHead(Number(req.url?.slice(1)), { 'x-length': 5 }).end('hello');
  });
  for (const [verb, status] of [
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 304],
  ] as const) {
    const response = await send(session, { ':method': verb, ':path': `/${status}` });
    assert.deepEqual([response.status, response.headers['x-length'], response.body], [status, '5', '']);
  }
  assert.deepEqual(finished, ['/200', '/204', '/304']);
});

test('a response that the handler breaks off is not complete for the client', async (t) => {
  const { session } = await start(t, (_, res) => {
    res.write('part', () => res.destroy());
  });
  const stream = session.request({ ':path': '/' });
  await assert.rejects(text(stream));
});

test('a client that gets an early response need not send the rest', async (t) => {
  const { session } = await start(t, (_, res) => void res.writeHead(413).end('too large'));
  const stream = session.request({ ':method': 'POST', ':path': '/' });
  stream.write(Buffer.alloc(1000));
  assert.equal(await text(stream), 'too large');
  if (!stream.closed) await once(stream, 'close');
  assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
});

test('the client is told to continue before it sends a body', async (t) => {
  const { session } = await start(t, echo);
  const stream = session.request({ ':method': 'POST', ':path': '/', expect: '100-continue' });
  await once(stream, 'continue');
  stream.end('body');
  assert.equal(await text(stream), 'POST / body');
});

test('the host is the authority', async (t) => {
  const { session } = await start(t, (req, res) => void res.end(req.headers.host));
  const both = { ':path': '/', ':authority': 'a.example', host: 'b.example' };
  assert.equal((await send(session, both)).body, 'a.example');
});

test('a body that does not arrive gets 408', async (t) => {
  const limits = { ...defaultLimits, requestMs: 50 };
  const { session } = await start(t, (req) => void req.resume(), { limits });
  const stream = session.request({ ':method': 'POST', ':path': '/' });
  stream.write('a');
  const [headers] = await once(stream, 'response');
  assert.equal(headers[':status'], 408);
  assert.match(await text(stream), /the request took too long to arrive/);
});

test('a client that opens no window for the response is disconnected from it', async (t) => {
  const closed = Promise.withResolvers<boolean>();
  const limits = { ...defaultLimits, unreadMs: 50 };
  const { session } = await start(
    t,
    (_, res) => {
      res.once('close', () => closed.resolve(res.writableFinished));
      res.end(Buffer.alloc(1_000_000));
    },
    { limits },
  );
  session
    .request({ ':path': '/' })
    .pause()
    .on('error', () => {});
  assert.equal(await closed.promise, false);
});

test('bodies that nothing reads are limited, by connection and in total', async (t) => {
  for (const limit of ['unauthenticatedConnectionBytes', 'unauthenticatedBytes'] as const) {
    const waiting: ServerResponse[] = [];
    const limits = { ...defaultLimits, [limit]: 1_000_000 };
    const { session } = await start(t, (_, res) => void waiting.push(res), { limits });
    const statuses: number[] = [];
    const responded = Promise.withResolvers<void>();
    for (let i = 0; i < 40; i++) {
      const stream = session.request({ ':method': 'POST', ':path': '/' }).on('error', () => {});
      stream.write('x');
      stream.on('response', (headers) => {
        statuses.push(Number(headers[':status']));
        responded.resolve();
      });
    }
    await responded.promise;
    assert.ok(statuses.every((status) => status === 429));
    assert.ok(waiting.length > 5 && waiting.length < 20, `${waiting.length}`);
    // What is answered counts no more.
    for (const res of waiting.splice(0)) res.end();
    const next = session.request({ ':method': 'POST', ':path': '/' }).on('error', () => {});
    while (waiting.length === 0) await new Promise(setImmediate);
    next.close();
  }
});

test('an upload gets larger windows', async (t) => {
  const { session } = await start(t, (req, res, bodyTimeout) => {
    bodyTimeout.suspend();
    void buffer(req).then(() => res.end());
  });
  const stream = session.request({ ':method': 'PUT', ':path': '/' });
  stream.write('a');
  while (session.remoteSettings.initialWindowSize !== 1024 * 1024) await once(session, 'remoteSettings');
  stream.end();
  assert.equal(await text(stream), '');
});

test('drain announces the end, and requests go on until stop, which waits for them', async (t) => {
  const responses: ServerResponse[] = [];
  const server = await start(t, (_, res) => void responses.push(res));
  const running = send(server.session, { ':path': '/running' });
  while (responses.length < 1) await new Promise(setImmediate);
  const goaway = once(server.session, 'goaway');
  server.drain();
  assert.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR);
  const stopped = server.stop();
  responses[0]?.end('finished');
  assert.equal((await running).body, 'finished');
  await stopped;
});

test('a request that does not finish within the grace gets 503', async (t) => {
  const started = Promise.withResolvers<void>();
  const server = await start(t, () => started.resolve());
  const running = send(server.session, { ':path': '/' });
  await started.promise;
  const stopped = server.stop({ graceMs: 20 });
  const { status, body } = await running;
  assert.equal(status, 503);
  assert.match(body, /the server stops/);
  await stopped;
});
