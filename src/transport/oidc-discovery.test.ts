import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createWellKnown } from './oidc-discovery.ts';

const ISSUER = 'https://wharf.example.com';
let keys: object = { keys: [{ kid: 'a' }] };
let isDown = false;

const handle = createWellKnown({
  issuer: () => ISSUER,
  publicKeys: async () => {
    if (isDown) throw new Error('connect ECONNREFUSED 10.0.0.7');
    return keys;
  },
});

const server = createServer((req: IncomingMessage, res: ServerResponse) => {
  if (!handle(req, res)) res.writeHead(404).end('not mine');
}).listen(0, '127.0.0.1');
await once(server, 'listening');
server.unref();

const ask = (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, init);
const KEYS = '/.well-known/jwks.json';
const DISCOVERY = '/.well-known/openid-configuration';

test('discovery names the issuer to the letter, and where the rest is', async () => {
  const document = (await (await ask(DISCOVERY)).json()) as Record<string, unknown>;
  assert.equal(document.issuer, ISSUER);
  assert.equal(document.jwks_uri, `${ISSUER}${KEYS}`);
  assert.equal(document.token_endpoint, `${ISSUER}/sts/exchange`);
  assert.deepEqual(document.id_token_signing_alg_values_supported, ['RS256']);
  assert.deepEqual(document.subject_types_supported, ['public']);
  assert.deepEqual(document.response_types_supported, ['id_token']);
});

test('both documents are for everybody, for five minutes', async () => {
  for (const path of [DISCOVERY, KEYS, `${KEYS}?x=1`]) {
    const { status, headers } = await ask(path);
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'application/json');
    assert.equal(headers.get('cache-control'), 'public, max-age=300');
    assert.equal(headers.get('access-control-allow-origin'), '*');
    const head = await ask(path, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
    assert.equal(head.headers.get('etag'), headers.get('etag'));
  }
});

test('who has the current document is told so, and no longer when the keys change', async () => {
  const etag = (await ask(KEYS)).headers.get('etag') ?? assert.fail();
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    assert.equal((await ask(KEYS, { headers: { 'if-none-match': known } })).status, 304);
  }
  keys = { keys: [{ kid: 'b' }, { kid: 'a' }] };
  const answer = await ask(KEYS, { headers: { 'if-none-match': etag } });
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), keys);
});

test('they are only read', async () => {
  const answer = await ask(KEYS, { method: 'POST' });
  assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD']);
});

test('trouble with the database is not told to strangers, nor kept by caches', async () => {
  isDown = true;
  const answer = await ask(KEYS);
  assert.deepEqual([answer.status, answer.headers.get('cache-control')], [503, 'no-store']);
  assert.doesNotMatch(await answer.text(), /10\.0\.0\.7/);
  isDown = false;
});

test('other paths are left to others', async () => {
  for (const path of ['/', '/.well-known', '/.well-known/', `${KEYS}/x`, '/.well-known/security.txt']) {
    assert.equal(await (await ask(path)).text(), 'not mine');
  }
});
