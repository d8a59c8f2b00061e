import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { DISCOVERY, newKey, startIssuer } from '../../../test/support/issuer.ts';
import { silent } from '../../../test/support/server.ts';
import { fetchJson } from '../outgoing/fetch-json.ts';
import { OutgoingError } from '../outgoing/permitted-url.ts';
import { createIssuers } from './issuer-keys.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const one = newKey('one');
const two = newKey('two');
const three = newKey('three');

/** An honest issuer, and somebody who knows it. */
async function setUp(t: TestContext, { allowPrivate = true } = {}) {
  const issuer = await startIssuer(t, one);
  const time = { now: Date.UTC(2030, 0, 1) };
  const fetch = (url: string) => fetchJson(url, { allowPrivate });
  const issuers = createIssuers({ fetchJson: fetch, clock: () => time.now, log: silent });
  const ids = async (kid: string, url = issuer.url) =>
    (await issuers.keysFor(url, { alg: 'ES256', kid })).map(({ id }) => id).join();
  /** How often the keys have been fetched. */
  const fetches = () => issuer.requests.filter((path) => path === '/keys').length;
  return { issuer, issuers, time, ids, fetches };
}

const because = (reason: RegExp) => (error: unknown) => error instanceof OutgoingError && reason.test(error.message);

test('keys are found by discovery, once an hour', async (t) => {
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

test('an issuer may ask for less than an hour, within reason', async (t) => {
  const { issuer, time, ids, fetches } = await setUp(t);
  const lifetimes: [string, number][] = [
    ['max-age=600', 10 * MINUTE],
    ['max-age=1', 5 * MINUTE],
    ['no-store', 5 * MINUTE],
    ['max-age=86400', HOUR],
  ];
  for (const [header, lifetime] of lifetimes) {
    issuer.answer = (req, res) => {
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

test('an issuer keeps its path, and the slash at its end', async (t) => {
  const { issuer, ids } = await setUp(t);
  const jwks_uri = `${issuer.url}/keys`;
  issuer.documents[`/realms/a${DISCOVERY}`] = { issuer: `${issuer.url}/realms/a`, jwks_uri };
  issuer.documents[`/realms/b${DISCOVERY}`] = { issuer: `${issuer.url}/realms/b/`, jwks_uri };
  assert.equal(await ids('one', `${issuer.url}/realms/a`), 'one');
  assert.equal(await ids('one', `${issuer.url}/realms/b/`), 'one');
  await assert.rejects(ids('one', `${issuer.url}/realms/b`), because(/names another issuer/));
});

test('Google by its short name is asked at its URL', async () => {
  const asked: string[] = [];
  const fetch = async (url: string) => {
    asked.push(url);
    throw new OutgoingError('no network here');
  };
  const issuers = createIssuers({ fetchJson: fetch, clock: () => 0, log: silent });
  await assert.rejects(issuers.keysFor('accounts.google.com', { alg: 'RS256', kid: 'x' }), OutgoingError);
  assert.deepEqual(asked, [`https://accounts.google.com${DISCOVERY}`]);
});

test('an unknown key id is a reason to fetch, once a minute', async (t) => {
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

test('many who ask at once make one fetch', async (t) => {
  const { ids, fetches } = await setUp(t);
  await Promise.all(Array.from({ length: 50 }, () => ids('one')));
  assert.equal(fetches(), 1);
});

test('a failure is remembered for ten seconds', async (t) => {
  const { issuer, time, ids } = await setUp(t);
  issuer.answer = (_, res) => res.writeHead(500).end();
  await assert.rejects(ids('one'), because(/status 500/));
  issuer.answer = undefined;
  time.now += 10 * SECOND - 1;
  await assert.rejects(ids('one'), because(/status 500/));
  assert.equal(issuer.requests.length, 1);
  time.now += 1;
  assert.equal(await ids('one'), 'one');
});

test('old keys bridge a failure for six hours, and nobody waits for the issuer after it has failed once', async (t) => {
  const { issuer, time, ids } = await setUp(t);
  await ids('one');
  const fetched = time.now;
  issuer.answer = (_, res) => res.writeHead(503).end();
  time.now += HOUR;
  assert.equal(await ids('one'), 'one');
  assert.equal(issuer.requests.length, 3);

  // Now it hangs; the answer comes all the same.
  const hanging: ServerResponse[] = [];
  issuer.answer = (_, res) => void hanging.push(res);
  time.now += 10 * SECOND;
  assert.equal(await ids('one'), 'one');
  assert.equal(await ids('one'), 'one');
  while (hanging.length === 0) await new Promise(setImmediate);
  for (const res of hanging) res.writeHead(503).end();

  issuer.answer = (_, res) => res.writeHead(503).end();
  time.now = fetched + 6 * HOUR - 1;
  assert.equal(await ids('one'), 'one');
  time.now += 1 + 10 * SECOND;
  await assert.rejects(ids('one'), because(/status 503/));
});

test('an issuer that hangs holds up nobody but those who need it', async (t) => {
  const { issuer: slow, ids } = await setUp(t);
  const { issuer: quick } = await setUp(t);
  const hanging: ServerResponse[] = [];
  slow.answer = (_, res) => void hanging.push(res);
  const waiting = ids('one');
  assert.equal(await ids('one', quick.url), 'one');
  while (hanging.length === 0) await new Promise(setImmediate);
  for (const res of hanging) res.destroy();
  await assert.rejects(waiting, because(/cannot be reached/));
});

test('keys of a hundred issuers can be fetched at a time', async () => {
  const { promise: never, reject } = Promise.withResolvers<never>();
  const issuers = createIssuers({ fetchJson: () => never, clock: () => 0, log: silent });
  const ask = (i: number) => issuers.keysFor(`https://i${i}.example.com`, { alg: 'ES256', kid: 'x' });
  const waiting = Array.from({ length: 100 }, (_, i) => assert.rejects(ask(i), /over/));
  await assert.rejects(ask(100), because(/too many issuers/));
  reject(new OutgoingError('over'));
  await Promise.all(waiting);
  await assert.rejects(ask(101), because(/over/));
});

test('issuers that do not exist push out none that does', async (t) => {
  const { ids, fetches } = await setUp(t);
  await ids('one');
  for (let i = 0; i < 1100; i++) await assert.rejects(ids('one', `https://127.0.0.1:1/${i}/..`), OutgoingError);
  await ids('one');
  assert.equal(fetches(), 1);
});

test('what an issuer must not answer', async (t) => {
  const { issuer, time, ids } = await setUp(t);
  const jwks_uri = `${issuer.url}/keys`;
  const discoveries: [unknown, RegExp][] = [
    [{ issuer: 'https://accounts.google.com', jwks_uri }, /names another issuer/],
    [{ issuer: `${issuer.url}/`, jwks_uri }, /names another issuer/],
    [{ jwks_uri }, /names another issuer/],
    [{ issuer: issuer.url }, /names no keys/],
    [{ issuer: issuer.url, jwks_uri: [jwks_uri] }, /names no keys/],
    [{ issuer: issuer.url, jwks_uri: 'file:///etc/passwd' }, /does not begin with https/],
    [{ issuer: issuer.url, jwks_uri: 'http://10.0.0.1/keys' }, /does not begin with https/],
    [{ issuer: issuer.url, jwks_uri: '/keys' }, /not a URL/],
  ];
  for (const [discovery, reason] of discoveries) {
    issuer.documents[DISCOVERY] = discovery;
    time.now += MINUTE;
    await assert.rejects(ids('one'), because(reason));
  }
  issuer.documents[DISCOVERY] = { issuer: issuer.url, jwks_uri };
  const symmetric = { kty: 'oct', k: 'AAAA' };
  for (const keys of [undefined, {}, [], [symmetric], [one.privateKey.export({ format: 'jwk' })]]) {
    issuer.documents['/keys'] = { keys };
    time.now += MINUTE;
    await assert.rejects(ids('one'), because(/no usable keys/));
  }
  issuer.publish(...Array(101).fill(one));
  time.now += MINUTE;
  await assert.rejects(ids('one'), because(/more than 100 keys/));
  issuer.publish(...Array(99).fill(two), one);
  time.now += MINUTE;
  assert.match(await ids('one'), /one$/);
});

test('names that are no issuers, or lead elsewhere than they say, are not contacted', async (t) => {
  const { issuer, ids } = await setUp(t);
  const names = ['', 'issuer', `${issuer.url}?`, `${issuer.url}/a/../b`, `${issuer.url}#`, 'http://example.com'];
  for (const name of names) await assert.rejects(ids('one', name), because(/^its name must/));
  assert.deepEqual(issuer.requests, []);
});

test('keys at a private address are not fetched where those are not allowed', async (t) => {
  const { issuer } = await setUp(t);
  const discovery = { issuer: 'https://public.example.com', jwks_uri: issuer.url.replace('http:', 'https:') };
  // Only the discovery document comes from a public place, which there is none of in a test.
  const fetch = (url: string) =>
    url.endsWith(DISCOVERY)
      ? Promise.resolve({ json: discovery, maxAgeMs: undefined })
      : fetchJson(url, { allowPrivate: false });
  const issuers = createIssuers({ fetchJson: fetch, clock: () => 0, log: silent });
  const asked = issuers.keysFor('https://public.example.com', { alg: 'ES256', kid: 'one' });
  await assert.rejects(asked, because(/no public address/));
  assert.deepEqual(issuer.requests, []);
});
