import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { CodeName } from '../../base/errors.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { httpStatus } from '../error-status.ts';
import { errorOf, startRest } from './server.testing.ts';

test('answers JSON with its length, and passes on who asks', async (t) => {
  const { fetch, calls } = await startRest(t);
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
  const { fetch } = await startRest(t);
  const response = await fetch('/iam/v2/groups', { method: 'HEAD' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-length'), '25');
  assert.equal(await response.text(), '');
});

test('an empty message is no body at all', async (t) => {
  const { fetch } = await startRest(t);
  const response = await fetch('/iam/v2/groups/a', { method: 'DELETE' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), null);
  assert.equal(response.headers.get('content-length'), '0');
  assert.equal(await response.text(), '');
});

test('a sane request id of the client is kept, another is replaced', async (t) => {
  const { fetch } = await startRest(t);
  const idFor = async (headers: Record<string, string>) =>
    (await fetch('/iam/v2/groups', { headers })).headers.get('x-request-id');
  assert.equal(await idFor({ 'x-request-id': 'a.B_c-1' }), 'a.B_c-1');
  assert.equal(await idFor({ cgrequestid: 'other' }), 'other');
  assert.equal(await idFor({ 'x-request-id': 'a b' }), 'new-1');
  assert.equal(await idFor({ 'x-request-id': 'x'.repeat(129) }), 'new-2');
});

test('an unknown path is 404 with our error body', async (t) => {
  const { fetch } = await startRest(t);
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

test('another verb is 405 with the right ones', async (t) => {
  const { fetch, calls } = await startRest(t);
  const response = await fetch('/ping/v2/ping', { method: 'DELETE' });
  assert.equal(response.status, 405);
  assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal((await errorOf(response)).code, Code.UNIMPLEMENTED);
  assert.equal(calls.length, 0);
});

test('a malformed path is 400', async (t) => {
  const { fetch } = await startRest(t);
  const response = await fetch('/iam/v2/groups/%zz');
  assert.equal(response.status, 400);
  assert.equal((await errorOf(response)).message, 'Invalid argument: uid: must be percent-encoded UTF-8');
});

test('OPTIONS tells the verbs, and nothing to other origins by default', async (t) => {
  const { fetch } = await startRest(t);
  const response = await fetch('/iam/v2/groups:batch/x', { method: 'OPTIONS' });
  assert.equal(response.status, 404);
  const known = await fetch('/ping/v2/ping', { method: 'OPTIONS', headers: { origin: 'https://a.example' } });
  assert.equal(known.status, 204);
  assert.equal(known.headers.get('allow'), 'GET, HEAD, OPTIONS');
  assert.equal(known.headers.get('access-control-allow-origin'), null);
});

test('CORS for all origins', async (t) => {
  const { fetch } = await startRest(t, { cors: ['*'] });
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
  const { fetch } = await startRest(t, { cors: ['https://a.example', 'https://b.example'] });
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
  const { fetch } = await startRest(t, { call: async () => Promise.reject(new ApiError(code, 'Oh')) });
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

test('a fault of ours is 500, says nothing and is logged', async (t) => {
  const { fetch, logged } = await startRest(t, { call: () => Promise.reject(new Error('secret detail')) });
  const response = await fetch('/iam/v2/groups');
  assert.equal(response.status, 500);
  assert.equal((await errorOf(response)).message, 'Internal: the request failed');
  assert.equal(logged.length, 1);
  assert.match(logged[0] ?? '', /secret detail.*"requestId":"new-1"/);
});

test('a client that goes away aborts its call', { timeout: 5_000 }, async (t) => {
  const arrived = Promise.withResolvers<AbortSignal>();
  const { open } = await startRest(t, {
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

test('an answered call is not aborted', async (t) => {
  const { fetch, calls } = await startRest(t);
  await (await fetch('/iam/v2/groups')).text();
  await (await fetch('/iam/v2/groups')).text();
  assert.equal(calls[0]?.signal().aborted, false);
});

test('takes a whole URL as target, as a proxy sends it', { timeout: 5_000 }, async (t) => {
  const { open, calls } = await startRest(t);
  const socket = await open();
  socket.write('GET http://host.example/iam/v2/groups?name=a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.match(await text(socket), /^HTTP\/1.1 200 /);
  assert.equal(calls[0]?.method.desc.name, 'ListGroups');
});
