import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { DISCOVERY, newKey, startIssuer } from '../../../test/support/issuer.ts';
import { silentLog } from '../../../test/support/server.ts';
import { fetchJson } from '../outgoing/fetch-json.ts';
import { OutgoingError } from '../outgoing/permitted-url.ts';
import { createIssuerKeys } from './issuer-keys.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const one = newKey('one');
const two = newKey('two');
const three = newKey('three');

/** Starts an issuer, and creates the key cache. */
async function setUp(t: TestContext, { allowPrivate = true } = {}) {
  const issuer = await startIssuer(t, one);
  const time = { now: Date.UTC(2030, 0, 1) };
  const fetch = (url: string) => fetchJson(url, { allowPrivate });
  const issuerKeys = createIssuerKeys({ fetchJson: fetch, clock: () => time.now, log: silentLog });
  const ids = async (kid: string, url = issuer.url) =>
    (await issuerKeys.keysFor(url, { alg: 'ES256', kid })).map(({ id }) => id).join();
  /** Returns how often the keys were fetched. */
  const fetches = () => issuer.requests.filter((path) => path === '/keys').length;
  return { issuer, issuerKeys, time, ids, fetches };
}

const outgoingError = (reason: RegExp) => (error: unknown) =>
  error instanceof OutgoingError && reason.test(error.message);

test('keys are fetched by discovery, once an hour', async (t) => {
  const { issuer, time, ids, fetches } = await setUp(t);
  assert.equal(await ids('one'), 'one');
  assert.deepEqual(issuer.requests, [DISCOVERY, '/keys']);
  time.now += HOUR - 1;
  assert.equal(await ids('one'), 'one');
  assert.equal(fetches(), 1);
  time.now += 1;
  issuer.publish(two);
  assert.equal(await ids('one'), 'two');
  assert.equal(fetches(), 2);
});

test('Cache-Control can shorten the hour, down to five minutes', async (t) => {
  const { issuer, time, ids, fetches } = await setUp(t);
  const lifetimes: [string, number][] = [
    ['max-age=600', 10 * MINUTE],
    ['max-age=1', 5 * MINUTE],
    ['no-store', 5 * MINUTE],
    ['max-age=86400', HOUR],
  ];
  for (const [header, lifetime] of lifetimes) {
    issuer.handler = (req, res) => {
      res.setHeader('cache-control', header).end(JSON.stringify(issuer.documents[req.url ?? '']));
    };
    time.now += 2 * HOUR;
    await ids('one');
    const before = fetches();
    time.now += lifetime - 1;
    await ids('one');
    assert.equal(fetches(), before, header);
    time.now += 1;
    await ids('one');
    assert.equal(fetches(), before + 1, header);
  }
});

test('the path and the trailing slash of an issuer are significant', async (t) => {
  const { issuer, ids } = await setUp(t);
  const jwks_uri = `${issuer.url}/keys`;
  issuer.documents[`/realms/a${DISCOVERY}`] = { issuer: `${issuer.url}/realms/a`, jwks_uri };
  issuer.documents[`/realms/b${DISCOVERY}`] = { issuer: `${issuer.url}/realms/b/`, jwks_uri };
  assert.equal(await ids('one', `${issuer.url}/realms/a`), 'one');
  assert.equal(await ids('one', `${issuer.url}/realms/b/`), 'one');
  await assert.rejects(ids('one', `${issuer.url}/realms/b`), outgoingError(/names another issuer/));
});

test('the short issuer name of Google is resolved to its URL', async () => {
  const urls: string[] = [];
  const fetch = async (url: string) => {
    urls.push(url);
    throw new OutgoingError('no network here');
  };
  const issuerKeys = createIssuerKeys({ fetchJson: fetch, clock: () => 0, log: silentLog });
  await assert.rejects(issuerKeys.keysFor('accounts.google.com', { alg: 'RS256', kid: 'x' }), OutgoingError);
  assert.deepEqual(urls, [`https://accounts.google.com${DISCOVERY}`]);
});

test('unknown key ids cause at most one fetch a minute', async (t) => {
  const { issuer, time, ids, fetches } = await setUp(t);
  await ids('one');
  time.now += 1;
  issuer.publish(one, two);
  assert.equal(await ids('two'), 'one,two');
  assert.equal(fetches(), 2);
  issuer.publish(one, two, three);
  for (let i = 0; i < 10; i++) assert.equal(await ids('three'), 'one,two');
  time.now += MINUTE - 1;
  await Promise.all(Array.from({ length: 10 }, () => ids('three')));
  assert.equal(fetches(), 2);
  time.now += 1;
  const found = await Promise.all(Array.from({ length: 10 }, () => ids('three')));
  assert.deepEqual(new Set(found), new Set(['one,two,three']));
  assert.equal(fetches(), 3);
});

test('concurrent requests share one fetch', async (t) => {
  const { ids, fetches } = await setUp(t);
  await Promise.all(Array.from({ length: 50 }, () => ids('one')));
  assert.equal(fetches(), 1);
});

test('a failure is cached for ten seconds', async (t) => {
  const { issuer, time, ids } = await setUp(t);
  issuer.handler = (_, res) => res.writeHead(500).end();
  await assert.rejects(ids('one'), outgoingError(/status 500/));
  issuer.handler = undefined;
  time.now += 10 * SECOND - 1;
  await assert.rejects(ids('one'), outgoingError(/status 500/));
  assert.equal(issuer.requests.length, 1);
  time.now += 1;
  assert.equal(await ids('one'), 'one');
});

test('stale keys are used for six hours after a failure, without waiting for the issuer again', async (t) => {
  const { issuer, time, ids } = await setUp(t);
  await ids('one');
  const fetched = time.now;
  issuer.handler = (_, res) => res.writeHead(503).end();
  time.now += HOUR;
  assert.equal(await ids('one'), 'one');
  assert.equal(issuer.requests.length, 3);

  // The issuer hangs now. The stale keys are returned without waiting.
  const hanging: ServerResponse[] = [];
  issuer.handler = (_, res) => void hanging.push(res);
  time.now += 10 * SECOND;
  assert.equal(await ids('one'), 'one');
  assert.equal(await ids('one'), 'one');
  while (hanging.length === 0) await new Promise(setImmediate);
  for (const res of hanging) res.writeHead(503).end();

  issuer.handler = (_, res) => res.writeHead(503).end();
  time.now = fetched + 6 * HOUR - 1;
  assert.equal(await ids('one'), 'one');
  time.now += 1 + 10 * SECOND;
  await assert.rejects(ids('one'), outgoingError(/status 503/));
});

test('an issuer that hangs does not delay requests for other issuers', async (t) => {
  const { issuer: slow, ids } = await setUp(t);
  const { issuer: quick } = await setUp(t);
  const hanging: ServerResponse[] = [];
  slow.handler = (_, res) => void hanging.push(res);
  const waiting = ids('one');
  assert.equal(await ids('one', quick.url), 'one');
  while (hanging.length === 0) await new Promise(setImmediate);
  for (const res of hanging) res.destroy();
  await assert.rejects(waiting, outgoingError(/cannot be reached/));
});

test('the keys of at most a hundred issuers are fetched at the same time', async () => {
  const { promise: never, reject } = Promise.withResolvers<never>();
  const issuerKeys = createIssuerKeys({ fetchJson: () => never, clock: () => 0, log: silentLog });
  const keysFor = (i: number) => issuerKeys.keysFor(`https://i${i}.example.com`, { alg: 'ES256', kid: 'x' });
  const waiting = Array.from({ length: 100 }, (_, i) => assert.rejects(keysFor(i), /over/));
  await assert.rejects(keysFor(100), outgoingError(/too many issuers/));
  reject(new OutgoingError('over'));
  await Promise.all(waiting);
  await assert.rejects(keysFor(101), outgoingError(/over/));
});

test('issuers that do not exist do not evict existing ones', async (t) => {
  const { ids, fetches } = await setUp(t);
  await ids('one');
  for (let i = 0; i < 1100; i++) await assert.rejects(ids('one', `https://127.0.0.1:1/${i}/..`), OutgoingError);
  await ids('one');
  assert.equal(fetches(), 1);
});

test('invalid responses of an issuer are refused', async (t) => {
  const { issuer, time, ids } = await setUp(t);
  const jwks_uri = `${issuer.url}/keys`;
  const discoveries: [unknown, RegExp][] = [
    [{ issuer: 'https://accounts.google.com', jwks_uri }, /names another issuer/],
    [{ issuer: `${issuer.url}/`, jwks_uri }, /names another issuer/],
    [{ jwks_uri }, /names another issuer/],
    [{ issuer: issuer.url }, /has no "jwks_uri"/],
    [{ issuer: issuer.url, jwks_uri: [jwks_uri] }, /has no "jwks_uri"/],
    [{ issuer: issuer.url, jwks_uri: 'file:///etc/passwd' }, /does not begin with https/],
    [{ issuer: issuer.url, jwks_uri: 'http://10.0.0.1/keys' }, /does not begin with https/],
    [{ issuer: issuer.url, jwks_uri: '/keys' }, /not a URL/],
  ];
  for (const [discovery, reason] of discoveries) {
    issuer.documents[DISCOVERY] = discovery;
    time.now += MINUTE;
    await assert.rejects(ids('one'), outgoingError(reason));
  }
  issuer.documents[DISCOVERY] = { issuer: issuer.url, jwks_uri };
  const symmetric = { kty: 'oct', k: 'AAAA' };
  for (const keys of [undefined, {}, [], [symmetric], [one.privateKey.export({ format: 'jwk' })]]) {
    issuer.documents['/keys'] = { keys };
    time.now += MINUTE;
    await assert.rejects(ids('one'), outgoingError(/no usable keys/));
  }
  issuer.publish(...Array(101).fill(one));
  time.now += MINUTE;
  await assert.rejects(ids('one'), outgoingError(/more than 100 keys/));
  issuer.publish(...Array(99).fill(two), one);
  time.now += MINUTE;
  assert.match(await ids('one'), /one$/);
});

test('invalid issuer names are not contacted', async (t) => {
  const { issuer, ids } = await setUp(t);
  const names = ['', 'issuer', `${issuer.url}?`, `${issuer.url}/a/../b`, `${issuer.url}#`, 'http://example.com'];
  for (const name of names) await assert.rejects(ids('one', name), outgoingError(/^its name must/));
  assert.deepEqual(issuer.requests, []);
});

test('keys at a private address are not fetched unless private addresses are allowed', async (t) => {
  const { issuer } = await setUp(t);
  const discovery = { issuer: 'https://public.example.com', jwks_uri: issuer.url.replace('http:', 'https:') };
  // The discovery document is not fetched, because a test has no public server.
  const fetch = (url: string) =>
    url.endsWith(DISCOVERY)
      ? Promise.resolve({ json: discovery, maxAgeMs: undefined })
      : fetchJson(url, { allowPrivate: false });
  const issuerKeys = createIssuerKeys({ fetchJson: fetch, clock: () => 0, log: silentLog });
  const keys = issuerKeys.keysFor('https://public.example.com', { alg: 'ES256', kid: 'one' });
  await assert.rejects(keys, outgoingError(/no public address/));
  assert.deepEqual(issuer.requests, []);
});
