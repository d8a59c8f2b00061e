import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import tls from 'node:tls';
import { startSink } from '../../test/support/sink.ts';
import { OutgoingError } from '../identity/outgoing/permitted-url.ts';
import { openWire } from './http-post.ts';

const never = new AbortController().signal;

/** The address of a server that answers so. */
async function serve(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function wireTo(t: TestContext, sink: string, options = { allowInsecure: true, timeoutMs: 2_000 }) {
  const wire = openWire(sink, options);
  t.after(() => wire.close());
  return (stop = never) => wire.post({ 'x-test': 'yes' }, '{"é":1}', stop);
}

test('a redirect is an answer like any other', async (t) => {
  let requests = 0;
  const url = await serve(t, (_, res) => {
    requests++;
    res.writeHead(302, { location: '/elsewhere' }).end();
  });
  assert.equal((await wireTo(t, url)()).status, 302);
  assert.equal(requests, 1);
});

test('one connection serves for many requests, until the sink closes it', async (t) => {
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
  const post = wireTo(t, url);
  for (let n = 0; n < 4; n++) assert.deepEqual(await post(), { status: 200, retryAfter: '7' });
  assert.equal(ports.size, 2);
});

test('a long answer is cut, and an endless one too', async (t) => {
  const url = await serve(t, (_, res) => {
    res.writeHead(200);
    const flood = () => {
      while (!res.destroyed && res.write(Buffer.alloc(64 * 1024)));
    };
    res.on('drain', flood);
    flood();
  });
  const post = wireTo(t, url);
  for (let n = 0; n < 2; n++) assert.equal((await post()).status, 200);
});

test('who does not answer, or not in time, is an error that says so', async (t) => {
  const hangs = await serve(t, () => {});
  const drops = await serve(t, (req) => req.socket.destroy());
  const impatient = { allowInsecure: true, timeoutMs: 50 };
  await assert.rejects(wireTo(t, hangs, impatient)(), /did not answer within 0.05 s/);
  await assert.rejects(wireTo(t, drops)(), /cannot be reached/);
  await assert.rejects(wireTo(t, 'http://127.0.0.1:1/')(), /cannot be reached/);
  const stop = new AbortController();
  const stopped = wireTo(t, hangs)(stop.signal);
  stop.abort();
  await assert.rejects(stopped, OutgoingError);
});

test('a name that leads inside is not followed there', async (t) => {
  let requests = 0;
  const url = new URL(
    await serve(t, (_, res) => {
      requests++;
      res.end();
    }),
  );
  const strict = { allowInsecure: false, timeoutMs: 2_000 };
  for (const sink of [`https://localhost:${url.port}/`, 'https://127.0.0.1/', 'https://no-such-name.invalid/']) {
    await assert.rejects(wireTo(t, sink, strict)(), /its host has no public address/, sink);
  }
  await assert.rejects(wireTo(t, `http://localhost:${url.port}/`, strict)(), /https/);
  assert.equal(requests, 0);
});

test('over TLS the certificate must be good, and what is wrong with it is said', async (t) => {
  const before = tls.getCACertificates('default');
  t.after(() => tls.setDefaultCACertificates(before));
  const authority = readFileSync(new URL('../../test/data/tls/ca.pem', import.meta.url), 'utf8');
  const postTo = async (certificate: string) => {
    const sink = await startSink(certificate);
    t.after(() => sink.close());
    return wireTo(t, sink.url)();
  };
  const untrusted = { name: 'OutgoingError', message: /^it has no valid certificate: nobody whom this server trusts/ };
  for (const certificate of ['signed', 'cert']) await assert.rejects(postTo(certificate), untrusted, certificate);
  tls.setDefaultCACertificates([...before, authority]);
  assert.equal((await postTo('signed')).status, 204);
  const problems = {
    expired: 'it has no valid certificate: it has expired',
    early: 'it has no valid certificate: its time is still to come',
    elsewhere: 'it has no valid certificate: it is for another host',
  };
  for (const [certificate, message] of Object.entries(problems)) {
    await assert.rejects(postTo(certificate), { name: 'OutgoingError', message });
  }
  const plain = await serve(t, (_, res) => res.end());
  const noTls = wireTo(t, plain.replace('http:', 'https:'))();
  await assert.rejects(noTls, { name: 'OutgoingError', message: 'it does not speak TLS as this server does' });
});
