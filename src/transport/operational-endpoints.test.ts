import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ApiError, Code } from '../base/errors.ts';
import { createMetrics } from '../base/metrics.ts';
import { createOps } from './operational-endpoints.ts';

/** Serves the operational paths, and 404 for what they leave to others. */
async function serve(t: TestContext, ready: () => Promise<void> = async () => {}, metrics = createMetrics()) {
  const ops = createOps({ ready, metrics });
  const server = createServer((req, res) => {
    if (!ops(req, res)) res.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });
}

test('/healthz answers as long as the process lives, whatever the database does', async (t) => {
  const ask = await serve(t, () => Promise.reject(new Error('gone')));
  const answer = await ask('/healthz?verbose');
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'application/json');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.deepEqual(await answer.json(), { status: 'ok' });
});

test('/readyz says whether requests can be served', async (t) => {
  const answer = await (await serve(t))('/readyz');
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), { status: 'ok' });
});

test('/readyz says what is wrong in our own words only', async (t) => {
  const failing = await (await serve(t, () => Promise.reject(new Error('connect db.internal:5432'))))('/readyz');
  assert.equal(failing.status, 503);
  assert.deepEqual(await failing.json(), { status: 'unavailable', reason: 'the database cannot be reached' });

  const stopping = new ApiError(Code.UNAVAILABLE, 'the server is stopping');
  const stopped = await (await serve(t, () => Promise.reject(stopping)))('/readyz');
  assert.equal(stopped.status, 503);
  assert.deepEqual(await stopped.json(), { status: 'unavailable', reason: 'the server is stopping' });
});

test('/readyz does not wait for a database that hangs', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked = Promise.withResolvers<void>();
  const ask = await serve(t, () => {
    asked.resolve();
    return new Promise(() => {});
  });
  const pending = ask('/readyz');
  await asked.promise;
  t.mock.timers.tick(2000);
  const answer = await pending;
  assert.equal(answer.status, 503);
  assert.deepEqual(await answer.json(), {
    status: 'unavailable',
    reason: 'the database did not answer within 2 s',
  });
});

test('/metrics answers in the Prometheus text format', async (t) => {
  const metrics = createMetrics();
  metrics.observeRequest('a.B/Get', 'rest', 'OK', 0.1);
  const answer = await (await serve(t, undefined, metrics))('/metrics');
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  assert.match(await answer.text(), /^wharf_requests_total\{.*\} 1$/m);
});

test('HEAD is GET without the body, and other methods are refused', async (t) => {
  const ask = await serve(t);
  const head = await ask('/healthz', 'HEAD');
  assert.equal(head.status, 200);
  assert.equal(head.headers.get('content-length'), String('{"status":"ok"}\n'.length));
  assert.equal(await head.text(), '');

  const post = await ask('/metrics', 'POST');
  assert.equal(post.status, 405);
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
});

test('other paths are left to others', async (t) => {
  const ask = await serve(t);
  for (const path of ['/', '/healthz/', '/healthzz', '/HEALTHZ', '/iam/v2/groups']) {
    assert.equal((await ask(path)).status, 404, path);
  }
});
