import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import tls from 'node:tls';
import { startSink } from '../../test/support/sink.ts';
import { OutgoingError } from '../identity/outgoing/permitted-url.ts';
import { openSinkConnection } from './sink-connection.ts';

const never = new AbortController().signal;

/** Starts a server and returns its URL. */
async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function connectTo(t: TestContext, sink: string, options = { allowInsecure: true, timeoutMs: 2_000 }) {
  const connection = openSinkConnection(sink, options);
  t.after(() => connection.close());
  return (stop = never) => connection.send('POST', { 'x-test': 'yes' }, '{"é":1}', stop);
}

test('a redirect is returned and not followed', async (t) => {
  let requests = 0;
  const url = await serve(t, (_, res) => {
    requests++;
    res.writeHead(302, { location: '/elsewhere' }).end();
  });
  assert.equal((await connectTo(t, url)()).status, 302);
  assert.equal(requests, 1);
});

test('requests share a connection until the sink closes it', async (t) => {
  const ports = new Set<number | undefined>();
  const url = await serve(t, async (req, res) => {
    ports.add(req.socket.remotePort);
    const chunks = await req.toArray();
    assert.equal(Buffer.concat(chunks).toString(), '{"é":1}');
    res.writeHead(200, { 'retry-after': '7' }).end('thank you');
    if (ports.size === 1 && req.headers['x-test'] === 'yes' && ++answered === 2)
      setImmediate(() => req.socket.destroy());
  });
  let answered = 0;
  const post = connectTo(t, url);
  for (let n = 0; n < 4; n++) {
    const { status, headers } = await post();
    assert.deepEqual([status, headers['retry-after']], [200, '7']);
  }
  assert.equal(ports.size, 2);
});

test('a long response is not read to its end', async (t) => {
  const url = await serve(t, (_, res) => {
    res.writeHead(200);
    const flood = () => {
      while (!res.destroyed && res.write(Buffer.alloc(64 * 1024)));
    };
    res.on('drain', flood);
    flood();
  });
  const post = connectTo(t, url);
  for (let n = 0; n < 2; n++) assert.equal((await post()).status, 200);
});

test('a sink that does not respond in time, or not at all, is an error', async (t) => {
  const hangs = await serve(t, () => {});
  const drops = await serve(t, (req) => req.socket.destroy());
  const shortTimeout = { allowInsecure: true, timeoutMs: 50 };
  await assert.rejects(connectTo(t, hangs, shortTimeout)(), /did not answer within 0.05 s/);
  await assert.rejects(connectTo(t, drops)(), /cannot be reached/);
  await assert.rejects(connectTo(t, 'http://127.0.0.1:1/')(), /cannot be reached/);
  const stop = new AbortController();
  const stopped = connectTo(t, hangs)(stop.signal);
  stop.abort();
  await assert.rejects(stopped, OutgoingError);
});

test('a host name with a private address is refused', async (t) => {
  let requests = 0;
  const url = new URL(
    await serve(t, (_, res) => {
      requests++;
      res.end();
    }),
  );
  const strict = { allowInsecure: false, timeoutMs: 2_000 };
  for (const sink of [`https://localhost:${url.port}/`, 'https://127.0.0.1/', 'https://no-such-name.invalid/']) {
    await assert.rejects(connectTo(t, sink, strict)(), /its host has no public address/, sink);
  }
  await assert.rejects(connectTo(t, `http://localhost:${url.port}/`, strict)(), /https/);
  assert.equal(requests, 0);
});

test('an invalid TLS certificate is refused, with the reason', async (t) => {
  const before = tls.getCACertificates('default');
  t.after(() => tls.setDefaultCACertificates(before));
  const authority = readFileSync(new URL('../../test/data/tls/ca.pem', import.meta.url), 'utf8');
  const postTo = async (certificate: string) => {
    const sink = await startSink(certificate);
    t.after(() => sink.close());
    return connectTo(t, sink.url)();
  };
  const untrusted = {
    name: 'OutgoingError',
    message: /^it has no valid certificate: it is not signed by an authority/,
  };
  for (const certificate of ['signed', 'cert']) await assert.rejects(postTo(certificate), untrusted, certificate);
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
  await assert.rejects(postTo('cert'), untrusted, 'the environment cannot turn the check off');
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  tls.setDefaultCACertificates([...before, authority]);
  assert.equal((await postTo('signed')).status, 204);
  const problems = {
    expired: 'it has no valid certificate: it has expired',
    early: 'it has no valid certificate: it is not valid yet',
    elsewhere: 'it has no valid certificate: it is for another host',
  };
  for (const [certificate, message] of Object.entries(problems)) {
    await assert.rejects(postTo(certificate), { name: 'OutgoingError', message });
  }
  const plain = await serve(t, (_, res) => res.end());
  const noTls = connectTo(t, plain.replace('http:', 'https:'))();
  await assert.rejects(noTls, { name: 'OutgoingError', message: 'the TLS handshake with it failed' });
});
