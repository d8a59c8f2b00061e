import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { get as getSecure } from 'node:https';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { cpuMsSince } from '../base/cpu-time.testing.ts';
import { defaultLimits } from './limits.ts';
import { exchange, grpcClient, open, pong, startServer, tlsPair } from './server.testing.ts';

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n';
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const EMPTY_SETTINGS = '\0\0\0\x04\0\0\0\0\0';
const bodyOf = (response: string) => JSON.parse(response.slice(response.indexOf('\r\n\r\n')));

for (const tls of [false, true]) {
  test(`HTTP/1.1 and gRPC share a port: ${tls ? 'TLS' : 'plaintext'}`, async (t) => {
    const { port, address } = await startServer(t, { tls });
    const request = tls ? getSecure(`https://${address}/`, { ca: tlsPair.cert }) : get(`http://${address}/`);
    const [response]: IncomingMessage[] = await once(request, 'response');
    assert.ok(response);
    assert.equal(await text(response), 'hello');
    assert.equal(await grpcClient(t, `localhost:${port}`, { tls }).ping(), 'pong');
  });
}

test('over TLS, HTTP/1.1 is used if it is offered, and without an offer the first bytes decide', async (t) => {
  const { port } = await startServer(t, { tls: true });
  for (const [offered, expected] of [
    [['h2', 'http/1.1'], 'http/1.1'],
    [['h2'], 'h2'],
    [[], false],
  ] as const) {
    const socket = connectTls({ port, host: '127.0.0.1', ca: tlsPair.cert, ALPNProtocols: [...offered] });
    t.after(() => socket.destroy());
    await once(socket, 'secureConnect');
    assert.equal(socket.alpnProtocol, expected);
    if (expected === 'h2') continue;
    socket.write(`${GET}Connection: close\r\n\r\n`);
    assert.match(await text(socket), /^HTTP\/1\.1 200 OK.*hello$/s);
  }
});

test('over TLS, versions before 1.2 and unknown protocols are refused', async (t) => {
  const { port } = await startServer(t, { tls: true });
  for (const options of [
    { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'ALL@SECLEVEL=0' },
    { ALPNProtocols: ['spdy/3'] },
  ] as const) {
    const socket = connectTls({ port, host: '127.0.0.1', ca: tlsPair.cert, ...options });
    await assert.rejects(once(socket, 'secureConnect'), /alert/);
  }
});

test('an HTTP/2 preface may arrive byte by byte', async (t) => {
  const { port } = await startServer(t);
  const socket = await open(t, port);
  socket.setNoDelay();
  for (const byte of `${PREFACE}${EMPTY_SETTINGS}`) {
    socket.write(byte, 'latin1');
    await new Promise(setImmediate);
  }
  const [response]: Buffer[] = await once(socket, 'data');
  assert.equal(response?.[3], 4, 'the server responds with a SETTINGS frame');
});

test('an HTTP/2 session ends when the client closes its side', async (t) => {
  const { port } = await startServer(t);
  const socket = await open(t, port);
  socket.write(`${PREFACE}${EMPTY_SETTINGS}`, 'latin1');
  await once(socket, 'data');
  socket.end().resume();
  await once(socket, 'end');
});

test('a request may arrive byte by byte, even when it begins like the preface', async (t) => {
  const { port } = await startServer(t, { http: (req, res) => res.end(req.method) });
  const socket = await open(t, port);
  socket.setNoDelay();
  for (const byte of 'PROPFIND / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n') {
    socket.write(byte);
    await new Promise(setImmediate);
  }
  assert.match(await text(socket), /PROPFIND$/);
});

test('a client that closes its side after the request still gets the response', async (t) => {
  const { port } = await startServer(t);
  const socket = await open(t, port);
  socket.end(`${GET}Connection: close\r\n\r\n`);
  assert.match(await text(socket), /hello$/);
});

for (const [name, bytes] of [
  ['garbage', '\x16\x03\x01\x02\0\x01garbage\r\n\r\n'],
  ['an invalid preface', 'PRIX / HTTP/1.1\r\n\r\n'],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
  ['two lengths', `${GET}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`],
  ['length and chunks', `${GET}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
  ['NUL in a header', `${GET}X: a\0b\r\n\r\n`],
] as const) {
  test(`malformed HTTP gets a 400 with an error body: ${name}`, async (t) => {
    const { port } = await startServer(t);
    const response = await exchange(t, port, bytes);
    assert.match(response, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(response, /\r\nconnection: close\r\n/i);
    const { code, message, details } = bodyOf(response);
    assert.equal(code, 3);
    assert.match(message, /^Invalid argument: (request|host): must be /);
    assert.deepEqual(
      details.map((detail: { '@type': string }) => detail['@type'].replace(/.*\./, '')),
      ['ErrorInfo', 'BadRequest', 'RequestInfo'],
    );
  });
}

test('headers of 70 KB get a 431, and a user agent of 9 KB is accepted', async (t) => {
  const { port } = await startServer(t, { http: (req, res) => res.end(`${req.headers['user-agent']?.length}`) });
  const tooLong = await exchange(t, port, `${GET}X: ${'x'.repeat(70_000)}\r\n\r\n${'more'.repeat(100_000)}`);
  assert.match(tooLong, /^HTTP\/1\.1 431 /);
  assert.equal(bodyOf(tooLong).message, 'Invalid argument: headers: must not exceed 65536 bytes in total');
  const accepted = await exchange(t, port, `${GET}User-Agent: ${'u'.repeat(9_000)}\r\nConnection: close\r\n\r\n`);
  assert.match(accepted, /9000$/);
});

test('a connection without a request, with incomplete headers or an incomplete body is closed', async (t) => {
  const limits = { ...defaultLimits, headersMs: 50, requestMs: 100 };
  const { port } = await startServer(t, { limits, http: (req) => req.resume() });
  assert.equal(await exchange(t, port, ''), '');
  assert.equal(await exchange(t, port, 'PRI * HT'), '');
  for (const incomplete of [GET, `${GET}Content-Length: 10\r\n\r\nabc`]) {
    const response = await exchange(t, port, incomplete);
    assert.match(response, /^HTTP\/1\.1 408 /);
    assert.equal(bodyOf(response).code, 4);
  }
});

test('over TLS, a connection without a complete handshake or without a request is closed', async (t) => {
  const { port } = await startServer(t, { tls: true, limits: { ...defaultLimits, headersMs: 50 } });
  assert.equal(await exchange(t, port, '\x16\x03\x01'), '');
  const socket = connectTls({ port, host: '127.0.0.1', ca: tlsPair.cert });
  await once(socket.resume(), 'close');
});

test('an idle connection is closed after its own, longer timeout', async (t) => {
  const { port } = await startServer(t, { limits: { ...defaultLimits, headersMs: 20, idleMs: 60 } });
  const started = performance.now();
  assert.match(await exchange(t, port, `${GET}\r\n`), /hello$/);
  assert.ok(performance.now() - started >= 60);
});

test('2,000 idle connections do not slow down requests', async (t) => {
  const { port, address } = await startServer(t);
  /** The CPU time of the server and its client for 50 requests. */
  const cpuMsOfRequests = async (): Promise<number> => {
    const before = process.cpuUsage();
    for (let count = 0; count < 50; count++) {
      const [response]: IncomingMessage[] = await once(get(`http://${address}/`, { agent: false }), 'response');
      assert.ok(response);
      assert.equal(await text(response), 'hello');
    }
    return cpuMsSince(before);
  };
  // The first requests also compile the code.
  await cpuMsOfRequests();
  const withoutIdle = await cpuMsOfRequests();
  await Promise.all(Array.from({ length: 2_000 }, () => open(t, port)));
  const withIdle = await cpuMsOfRequests();
  assert.ok(withIdle < 10 * withoutIdle, `${withIdle} ms of CPU time instead of ${withoutIdle} ms`);
  assert.equal(await grpcClient(t, address).ping(), 'pong');
});

test('connections that are reset at any point do not disturb other clients', async (t) => {
  const { port, address } = await startServer(t, { http: (_, res) => res.end('x'.repeat(1 << 20)) });
  for (const bytes of ['', 'PRI', 'GET / HT', `${GET}\r\n`, PREFACE]) {
    const socket = await open(t, port);
    await new Promise((resolve) => socket.write(bytes, resolve));
    socket.resetAndDestroy();
  }
  assert.equal(await grpcClient(t, address).ping(), 'pong');
});

test('listen fails when the address is in use', async (t) => {
  const { port } = await startServer(t);
  await assert.rejects(startServer(t, { port }), { code: 'EADDRINUSE' });
});

test('stop waits for a running request, closes idle connections at once and accepts no further ones', async (t) => {
  const arrived = Promise.withResolvers<ServerResponse>();
  const http = (req: IncomingMessage, res: ServerResponse) => (req.url === '/slow' ? arrived.resolve(res) : res.end());
  const { port, address, stop } = await startServer(t, { http });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());

  const unused = (await open(t, port)).resume();
  const idle = (await open(t, port)).resume();
  idle.write(`${GET}\r\n`);
  await once(idle, 'data');
  const request = get(`http://${address}/slow`, { agent });
  const slowResponse = await arrived.promise;

  const stopped = stop();
  await Promise.all([once(unused, 'close'), once(idle, 'close')]);
  await assert.rejects(open(t, port), { code: 'ECONNREFUSED' });

  slowResponse.end('late but complete');
  const [response]: IncomingMessage[] = await once(request, 'response');
  assert.ok(response);
  assert.equal(response.headers.connection, 'close');
  assert.equal(await text(response), 'late but complete');
  await stopped;
});

test('stop does not wait for a client that ends during the TLS handshake', async (t) => {
  const limits = { ...defaultLimits, headersMs: 600_000 };
  const { port, stop } = await startServer(t, { tls: true, limits });
  const silent = await open(t, port);
  const closed = once(silent.resume(), 'close');
  // It knows the certificate already, but the server does not know yet that the handshake is complete.
  const quick = connectTls({ port, host: '127.0.0.1', ca: tlsPair.cert });
  await once(quick, 'secureConnect');
  quick.destroy();
  await stop({ graceMs: 600_000 });
  await closed;
});

test('stop does not cut off a response that is still being sent', async (t) => {
  const size = 32 << 20;
  const sending = Promise.withResolvers<void>();
  const { port, stop } = await startServer(t, {
    http: (_, res) => {
      res.end(Buffer.alloc(size));
      sending.resolve();
    },
  });
  const socket = await open(t, port);
  socket.write(`${GET}\r\n`);
  await sending.promise;
  const stopped = stop();
  let received = 0;
  for await (const chunk of socket) received += chunk.length;
  assert.ok(received > size);
  await stopped;
});

test('stop waits for a running gRPC call and closes idle sessions', async (t) => {
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { address, stop } = await startServer(t, {
    call: async () => {
      arrived.resolve();
      await release.promise;
      return pong;
    },
  });
  const idle = grpcClient(t, address);
  idle.client.waitForReady(Date.now() + 5_000, () => {});
  const ping = grpcClient(t, address).ping();
  await arrived.promise;
  const stopped = stop();
  release.resolve();
  assert.equal(await ping, 'pong');
  await stopped;
});

test('stop closes the remaining connections after the grace', async (t) => {
  const overHttp = Promise.withResolvers<void>();
  const overGrpc = Promise.withResolvers<void>();
  const { port, address, stop } = await startServer(t, {
    http: () => overHttp.resolve(),
    call: () => {
      overGrpc.resolve();
      return new Promise(() => {});
    },
  });
  const stuck = await open(t, port);
  stuck.write(`${GET}\r\n`);
  const refusal = text(stuck);
  const ping = assert.rejects(grpcClient(t, address).ping());
  await Promise.all([overHttp.promise, overGrpc.promise]);
  await stop({ graceMs: 1 });
  assert.match(await refusal, /^HTTP\/1\.1 503 .*\r\nConnection: close\r\n.*"Unavailable: the server stops /s);
  await ping;
});

for (const tls of [false, true]) {
  test(`a drain ends connections after a response, and serves new ones: ${tls ? 'TLS' : 'plaintext'}`, async (t) => {
    const { port, drain } = await startServer(t, { tls });
    const connection = async (protocol: string) => {
      const options = { port, host: '127.0.0.1', ca: tlsPair.cert, ALPNProtocols: [protocol] };
      const socket = tls ? connectTls(options) : await open(t, port);
      t.after(() => socket.destroy());
      if (tls) await once(socket, 'secureConnect');
      return socket;
    };
    const idle = await connection('http/1.1');
    idle.write(`${GET}\r\n`);
    const [first] = (await once(idle, 'data')) as [Buffer];
    assert.doesNotMatch(first.toString(), /connection: close/i);
    const scheme = tls ? 'https' : 'http';
    const http2Socket = await connection('h2');
    const session = connectHttp2(`${scheme}://localhost:${port}`, { createConnection: () => http2Socket });
    t.after(() => session.destroy());
    await once(session, 'remoteSettings');

    const goaway = once(session, 'goaway');
    drain();
    // The highest stream id: calls that the client has already sent are served.
    const [code, lastStreamId] = await goaway;
    assert.deepEqual([code, lastStreamId], [0, 2 ** 31 - 1]);
    const fresh = await connection('http/1.1');
    for (const socket of [idle, fresh]) {
      socket.write(`${GET}\r\n`);
      assert.match(await text(socket), /^HTTP\/1\.1 200 OK.*\r\nconnection: close\r\n.*hello$/is);
    }
    assert.equal(await grpcClient(t, `localhost:${port}`, { tls }).ping(), 'pong');
  });
}

test('requests that were pipelined before a drain are all answered', async (t) => {
  const responses: ServerResponse[] = [];
  const { port, drain, stop } = await startServer(t, { http: (_, res) => responses.push(res) });
  const socket = await open(t, port);
  socket.write(`${GET}\r\n${GET}\r\n${GET}\r\n`);
  const received = text(socket);
  while (responses.length === 0) await new Promise(setImmediate);
  drain();
  const stopped = stop();
  for (let i = 0; i < 3; i++) {
    while (responses.length === i) await new Promise(setImmediate);
    responses[i]?.end(`response ${i}`);
  }
  const all = await received;
  assert.deepEqual(
    all.match(/response \d|connection: close/g),
    ['response 0', 'response 1', 'connection: close', 'response 2'],
    all,
  );
  await stopped;
});

test('a stop gives requests that are just arriving time on open connections', async (t) => {
  const { port, stop } = await startServer(t);
  const unused = await open(t, port);
  const stopped = stop({ idleMs: 60_000 });
  unused.write(`${GET}\r\n`);
  assert.match(await text(unused), /hello$/);
  await stopped;
});
