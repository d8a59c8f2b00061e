import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { sendWithRetries } from './retry-after.ts';

/** A server that refuses the first requests with these values of Retry-After, or without one. */
async function busyServer(t: TestContext, refusals: (string | undefined)[]) {
  let requests = 0;
  const server = createServer((_req, res) => {
    const retryAfter = refusals[requests++];
    const isRefused = requests <= refusals.length;
    res.writeHead(isRefused ? 429 : 200, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
}

test('a request is sent again after the delay, and the user is told', async (t) => {
  const server = await busyServer(t, ['0', '0']);
  const said: string[] = [];
  const request = { verb: 'POST', server: server.url, path: '/' };
  const { status } = await sendWithRetries(request, (text) => said.push(text));
  assert.deepEqual([status, server.requests(), said.length], [200, 3, 2]);
  assert.match(said[0] ?? '', /trying again in 0 s\n$/);
});

test('a long delay, a date and a missing delay are not waited for', async (t) => {
  for (const retryAfter of ['31', 'Wed, 21 Oct 2026 07:28:00 GMT', undefined, '-1']) {
    const server = await busyServer(t, [retryAfter]);
    const { status } = await sendWithRetries({ verb: 'GET', server: server.url, path: '/' }, () => assert.fail());
    assert.deepEqual([status, server.requests()], [429, 1], String(retryAfter));
  }
});
