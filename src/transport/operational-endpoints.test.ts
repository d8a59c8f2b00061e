import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ApiError, Code } from '../base/errors.ts';
import { createMetrics, type Metrics } from '../base/metrics.ts';
import { version } from '../base/version.ts';
import { createOperationalEndpoints } from './operational-endpoints.ts';

/** Serves the operational endpoints, and 404 for other paths. */
async function serve(
  t: TestContext,
  ready: () => Promise<void> = async () => {},
  metrics: Pick<Metrics, 'contentType' | 'text'> = createMetrics(),
  showDetails = true,
) {
  const handle = createOperationalEndpoints({ ready, metrics, showDetails });
  const server = createServer((req, res) => {
    if (!handle(req, res)) res.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return (path: string, method = 'GET') => fetch(`http://127.0.0.1:${port}${path}`, { method });
}

test('/healthz does not depend on the database', async (t) => {
  const request = await serve(t, () => Promise.reject(new Error('no database')));
  const response = await request('/healthz?verbose');
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.deepEqual(await response.json(), { status: 'ok' });
});

test('/version says which version is running', async (t) => {
  const response = await (await serve(t))('/version');
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { version });
});

test('/readyz says whether requests can be served', async (t) => {
  const response = await (await serve(t))('/readyz');
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { status: 'ok' });
});

test('/readyz returns the message of an ApiError, but not of other errors', async (t) => {
  const failing = await (await serve(t, () => Promise.reject(new Error('connect db.internal:5432'))))('/readyz');
  assert.equal(failing.status, 503);
  assert.deepEqual(await failing.json(), { status: 'unavailable', reason: 'the database cannot be reached' });

  const stopping = new ApiError(Code.UNAVAILABLE, 'the server is stopping');
  const stopped = await (await serve(t, () => Promise.reject(stopping)))('/readyz');
  assert.equal(stopped.status, 503);
  assert.deepEqual(await stopped.json(), { status: 'unavailable', reason: 'the server is stopping' });
});

test('/readyz does not wait for a database that does not respond', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const requested = Promise.withResolvers<void>();
  const request = await serve(t, () => {
    requested.resolve();
    return new Promise(() => {});
  });
  const pending = request('/readyz');
  await requested.promise;
  t.mock.timers.tick(2000);
  const response = await pending;
  assert.equal(response.status, 503);
  assert.deepEqual(await response.json(), {
    status: 'unavailable',
    reason: 'the database did not respond within 2 s',
  });
});

test('/metrics responds in the Prometheus text format', async (t) => {
  const metrics = createMetrics();
  metrics.observeRequest('a.B/Get', 'rest', 'OK', 0.1);
  const response = await (await serve(t, undefined, metrics))('/metrics');
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  assert.match(await response.text(), /^wharf_requests_total\{.*\} 1$/m);
});

test('the metrics are collected once for all requests of a second', async (t) => {
  let collected = 0;
  const request = await serve(t, undefined, { contentType: 'text/plain', text: async () => `${++collected}` });
  const responses = await Promise.all(Array.from({ length: 20 }, () => request('/metrics')));
  assert.deepEqual(new Set(await Promise.all(responses.map((response) => response.text()))), new Set(['1']));
});

test('the database is asked once for all requests that wait for it', async (t) => {
  const database = Promise.withResolvers<void>();
  let asked = 0;
  const request = await serve(t, () => {
    asked++;
    return database.promise;
  });
  const pending = Array.from({ length: 20 }, () => request('/readyz'));
  await request('/healthz');
  database.resolve();
  for (const response of await Promise.all(pending)) assert.equal(response.status, 200);
  assert.ok(asked < 20, `${asked} times`);
});

test('without details, /readyz gives no reason and /metrics says which setting serves them', async (t) => {
  const request = await serve(t, () => Promise.reject(new Error('no database')), undefined, false);
  const ready = await request('/readyz');
  assert.equal(ready.status, 503);
  assert.deepEqual(await ready.json(), { status: 'unavailable' });
  const metrics = await request('/metrics');
  assert.equal(metrics.status, 404);
  assert.match(await metrics.text(), /WHARF_OPERATIONS_LISTEN/);
});

test('HEAD is GET without the body, and other methods are refused', async (t) => {
  const request = await serve(t);
  const head = await request('/healthz', 'HEAD');
  assert.equal(head.status, 200);
  assert.equal(head.headers.get('content-length'), String('{"status":"ok"}\n'.length));
  assert.equal(await head.text(), '');

  const post = await request('/metrics', 'POST');
  assert.equal(post.status, 405);
  assert.equal(post.headers.get('allow'), 'GET, HEAD');
});

test('other paths are not handled', async (t) => {
  const request = await serve(t);
  for (const path of ['/', '/healthz/', '/healthzz', '/HEALTHZ', '/iam/v2/groups']) {
    assert.equal((await request(path)).status, 404, path);
  }
});
