import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createOidcDiscovery } from './oidc-discovery.ts';

const ISSUER = 'https://wharf.example.com';
let keys: object = { keys: [{ kid: 'a' }] };
let isDown = false;

const handle = createOidcDiscovery({
  issuer: ISSUER,
  publicKeys: async () => {
    if (isDown) throw new Error('connect ECONNREFUSED 10.0.0.7');
    return keys;
  },
});

const server = createServer((req: IncomingMessage, res: ServerResponse) => {
  if (!handle(req, res)) res.writeHead(404).end('not handled');
}).listen(0, '127.0.0.1');
await once(server, 'listening');
server.unref();

const request = (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, init);
const KEYS = '/.well-known/jwks.json';
const DISCOVERY = '/.well-known/openid-configuration';

test('discovery has exactly the issuer, and the URLs of the other endpoints', async () => {
  const document = (await (await request(DISCOVERY)).json()) as Record<string, unknown>;
  assert.equal(document.issuer, ISSUER);
  assert.equal(document.jwks_uri, `${ISSUER}${KEYS}`);
  assert.equal(document.token_endpoint, `${ISSUER}/sts/exchange`);
  assert.deepEqual(document.id_token_signing_alg_values_supported, ['RS256']);
  assert.deepEqual(document.subject_types_supported, ['public']);
  assert.deepEqual(document.response_types_supported, ['id_token']);
});

test('both documents are public and may be cached for five minutes', async () => {
  for (const path of [DISCOVERY, KEYS, `${KEYS}?x=1`]) {
    const { status, headers } = await request(path);
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'application/json');
    assert.equal(headers.get('cache-control'), 'public, max-age=300');
    assert.equal(headers.get('access-control-allow-origin'), '*');
    const head = await request(path, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
    assert.equal(head.headers.get('etag'), headers.get('etag'));
  }
});

test('a client with the current document gets 304, until the keys change', async () => {
  const etag = (await request(KEYS)).headers.get('etag') ?? assert.fail();
  for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    assert.equal((await request(KEYS, { headers: { 'if-none-match': tags } })).status, 304);
  }
  keys = { keys: [{ kid: 'b' }, { kid: 'a' }] };
  const response = await request(KEYS, { headers: { 'if-none-match': etag } });
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), keys);
});

test('only GET and HEAD are supported', async () => {
  const response = await request(KEYS, { method: 'POST' });
  assert.deepEqual([response.status, response.headers.get('allow')], [405, 'GET, HEAD']);
});

test('an error of the database is not sent to the client, and the response is not cached', async () => {
  isDown = true;
  const response = await request(KEYS);
  assert.deepEqual([response.status, response.headers.get('cache-control')], [503, 'no-store']);
  assert.doesNotMatch(await response.text(), /10\.0\.0\.7/);
  isDown = false;
});

test('other paths are not handled', async () => {
  for (const path of ['/', '/.well-known', '/.well-known/', `${KEYS}/x`, '/.well-known/security.txt']) {
    assert.equal(await (await request(path)).text(), 'not handled');
  }
});

test('without a public URL the endpoints follow the client, and the issuer stays', async (t) => {
  const following = createOidcDiscovery({
    issuer: ISSUER,
    urlOf: ({ headers }) => `http://${headers['x-test-host']}`,
    publicKeys: async () => keys,
  });
  const other = createServer((req, res) => void following(req, res)).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const response = await fetch(`http://127.0.0.1:${(other.address() as AddressInfo).port}${DISCOVERY}`, {
    headers: { 'x-test-host': 'box:8080' },
  });
  const document = (await response.json()) as Record<string, unknown>;
  assert.equal(document.issuer, ISSUER);
  assert.equal(document.jwks_uri, `http://box:8080${KEYS}`);
  assert.equal(document.token_endpoint, 'http://box:8080/sts/exchange');
  // Caches must not send the document of one host to clients of another.
  assert.match(response.headers.get('vary') ?? '', /host, forwarded, x-forwarded-host, x-forwarded-proto/);
  assert.equal((await request(DISCOVERY)).headers.get('vary'), null);
});
