import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { CodeName } from '../../base/errors.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { httpStatus } from '../../base/http-status.ts';
import { errorOf, startRestServer } from './server.testing.ts';

test('responds with JSON and its length, and passes on the token and the client', async (t) => {
  const { fetch, calls } = await startRestServer(t);
  const response = await fetch('/iam/v2/groups?page_size=3', {
    headers: { authorization: 'Bearer x', 'user-agent': 'me/1' },
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/json');
  assert.equal(response.headers.get('content-length'), '25');
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(response.headers.get('x-request-id'), 'new-1');
  assert.equal(await response.text(), '{"groups":[],"skipped":0}');
  const [incoming] = calls;
  assert.equal(incoming?.method.desc.name, 'ListGroups');
  assert.equal(incoming?.wire, 'rest');
  assert.equal(incoming?.authorization, 'Bearer x');
  assert.equal(incoming?.requestId, 'new-1');
  assert.deepEqual(incoming?.peer, { address: '127.0.0.1', userAgent: 'me/1' });
  assert.equal(incoming?.signal().aborted, false);
});

test('HEAD is GET without the body', async (t) => {
  const { fetch } = await startRestServer(t);
  const response = await fetch('/iam/v2/groups', { method: 'HEAD' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-length'), '25');
  assert.equal(await response.text(), '');
});

test('the response to an empty message has no body', async (t) => {
  const { fetch } = await startRestServer(t);
  const response = await fetch('/iam/v2/groups/a', { method: 'DELETE' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), null);
  assert.equal(response.headers.get('content-length'), '0');
  assert.equal(await response.text(), '');
});

test('a valid request id of the client is used, an invalid one is replaced', async (t) => {
  const { fetch } = await startRestServer(t);
  const idFor = async (headers: Record<string, string>) =>
    (await fetch('/iam/v2/groups', { headers })).headers.get('x-request-id');
  assert.equal(await idFor({ 'x-request-id': 'a.B_c-1' }), 'a.B_c-1');
  assert.equal(await idFor({ cgrequestid: 'other' }), 'other');
  assert.equal(await idFor({ 'x-request-id': 'a b' }), 'new-1');
  assert.equal(await idFor({ 'x-request-id': 'x'.repeat(129) }), 'new-2');
});

test('an unknown path is 404 with an error body', async (t) => {
  const { fetch } = await startRestServer(t);
  const response = await fetch('/nowhere?x=1', { headers: { 'x-request-id': 'me' } });
  assert.equal(response.status, 404);
  assert.deepEqual(await errorOf(response), {
    code: 5,
    message: 'Not found: path /nowhere',
    details: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'NOT_FOUND', domain: 'wharfinger.dev' },
      {
        '@type': 'type.googleapis.com/google.rpc.ResourceInfo',
        resourceType: 'path',
        resourceName: '/nowhere',
        description: 'path /nowhere does not exist',
      },
      { '@type': 'type.googleapis.com/google.rpc.RequestInfo', requestId: 'me' },
    ],
  });
});

test('a verb that the path does not support is 405, with the supported verbs', async (t) => {
  const { fetch, calls } = await startRestServer(t);
  const response = await fetch('/ping/v2/ping', { method: 'DELETE' });
  assert.equal(response.status, 405);
  assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal((await errorOf(response)).code, Code.UNIMPLEMENTED);
  assert.equal(calls.length, 0);
});

test('a malformed path is 400', async (t) => {
  const { fetch } = await startRestServer(t);
  const response = await fetch('/iam/v2/groups/%zz');
  assert.equal(response.status, 400);
  assert.equal((await errorOf(response)).message, 'Invalid argument: uid: must be percent-encoded UTF-8');
});

test('OPTIONS returns the verbs, and by default no CORS headers', async (t) => {
  const { fetch } = await startRestServer(t);
  const response = await fetch('/iam/v2/groups:batch/x', { method: 'OPTIONS' });
  assert.equal(response.status, 404);
  const ping = await fetch('/ping/v2/ping', { method: 'OPTIONS', headers: { origin: 'https://a.example' } });
  assert.equal(ping.status, 204);
  assert.equal(ping.headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal(ping.headers.get('access-control-allow-origin'), null);
});

test('CORS for all origins', async (t) => {
  const { fetch } = await startRestServer(t, { cors: ['*'] });
  const headers = { origin: 'https://a.example' };
  const preflight = await fetch('/iam/v2/groups', { method: 'OPTIONS', headers });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /GET.*POST|POST.*GET/);
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'authorization, content-type, x-request-id');
  assert.equal(preflight.headers.get('access-control-max-age'), '7200');
  assert.equal(preflight.headers.get('access-control-allow-credentials'), null);
  for (const path of ['/iam/v2/groups', '/nowhere']) {
    const response = await fetch(path, { headers });
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
    assert.equal(response.headers.get('access-control-expose-headers'), 'x-request-id');
  }
});

test('CORS for some origins', async (t) => {
  const { fetch } = await startRestServer(t, { cors: ['https://a.example', 'https://b.example'] });
  const originFor = async (origin: string) => {
    const { headers } = await fetch('/iam/v2/groups', { headers: { origin } });
    assert.equal(headers.get('vary'), 'origin');
    return headers.get('access-control-allow-origin');
  };
  assert.equal(await originFor('https://b.example'), 'https://b.example');
  assert.equal(await originFor('https://c.example'), null);
  assert.equal(await originFor('null'), null);
  const preflight = await fetch('/iam/v2/groups', { method: 'OPTIONS', headers: { origin: 'https://c.example' } });
  assert.equal(preflight.headers.get('access-control-allow-methods'), null);
});

test('each code has its HTTP status', async (t) => {
  let code: Code = Code.OK;
  const { fetch } = await startRestServer(t, { call: async () => Promise.reject(new ApiError(code, 'Oh')) });
  for (const name of Object.keys(Code) as CodeName[]) {
    code = Code[name];
    if (code === Code.OK) continue;
    const response = await fetch('/iam/v2/groups');
    assert.equal(response.status, httpStatus(code), name);
    const { details } = await errorOf(response);
    assert.deepEqual(details[0], {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: name,
      domain: 'iam.wharfinger.dev',
    });
    assert.equal(response.headers.get('retry-after'), name === 'UNAVAILABLE' ? '1' : null);
    const challenge = name === 'UNAUTHENTICATED' ? 'Bearer realm="wharfinger"' : null;
    assert.equal(response.headers.get('www-authenticate'), challenge);
  }
});

test('an unexpected error is 500 without its message, and is logged', async (t) => {
  const { fetch, logged } = await startRestServer(t, { call: () => Promise.reject(new Error('secret detail')) });
  const response = await fetch('/iam/v2/groups');
  assert.equal(response.status, 500);
  assert.equal((await errorOf(response)).message, 'Internal: the request failed');
  assert.equal(logged.length, 1);
  assert.match(logged[0] ?? '', /secret detail.*"requestId":"new-1"/);
});

test('a client that disconnects aborts its call', { timeout: 30_000 }, async (t) => {
  const arrived = Promise.withResolvers<AbortSignal>();
  const { open } = await startRestServer(t, {
    call: (incoming) => {
      const signal = incoming.signal();
      arrived.resolve(signal);
      return once(signal, 'abort').then(() => Promise.reject(signal.reason));
    },
  });
  const socket = await open();
  socket.write('GET /iam/v2/groups HTTP/1.1\r\nHost: x\r\n\r\n');
  const signal = await arrived.promise;
  assert.equal(signal.aborted, false);
  const aborted = once(signal, 'abort');
  socket.destroy();
  await aborted;
  assert.equal((signal.reason as ApiError).code, Code.CANCELLED);
});

test('a finished call is not aborted', async (t) => {
  const { fetch, calls } = await startRestServer(t);
  await (await fetch('/iam/v2/groups')).text();
  await (await fetch('/iam/v2/groups')).text();
  assert.equal(calls[0]?.signal().aborted, false);
});

test('accepts an absolute URL as target, which proxies send', { timeout: 30_000 }, async (t) => {
  const { open, calls } = await startRestServer(t);
  const socket = await open();
  socket.write('GET http://host.example/iam/v2/groups?name=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.match(await text(socket), /^HTTP\/1.1 200 /);
  assert.equal(calls[0]?.method.desc.name, 'ListGroups');
});
