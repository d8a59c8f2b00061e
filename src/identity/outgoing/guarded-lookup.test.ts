import assert from 'node:assert/strict';
import { pbkdf2 } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { type Answers, startDns, v4, v6 } from '../../../test/support/dns.ts';
import { type GuardedLookupOptions, guardedLookup } from './guarded-lookup.ts';
import { OutgoingError } from './permitted-url.ts';
import type { SystemNames } from './system-names.ts';

const PUBLIC_V6 = '2606:4700:0:0:0:0:0:1';
const REFUSED = new OutgoingError('its host has no public address');

/** A machine that knows no more than DNS does. */
const bare: SystemNames = { addressesOf: async () => [], completed: async (name) => [name] };

async function startNames(t: TestContext, answers: Answers, options: GuardedLookupOptions = {}) {
  const dns = await startDns(answers);
  t.after(() => dns.close());
  const lookupOf = (allowPrivate: boolean) =>
    guardedLookup(allowPrivate, { newNames: () => dns.resolver(), system: bare, ...options });
  const ask = (hostname: string, { allowPrivate = false, all = true } = {}) =>
    new Promise<unknown>((resolve, reject) => {
      lookupOf(allowPrivate)(hostname, { all }, (error, found, family) =>
        error ? reject(error) : resolve(all ? found : [found, family]),
      );
    });
  return { dns, ask, lookupOf };
}

/** The same records for every name. */
const always =
  (four: readonly string[], six: readonly string[] = []): Answers =>
  (_, family) =>
    family === 4 ? four.map(v4) : six.map(v6);

test('public addresses are handed to the socket in the form it asks for', async (t) => {
  const { ask } = await startNames(t, always(['8.8.8.8', '1.1.1.1'], [PUBLIC_V6]));
  assert.deepEqual(await ask('name.example'), [
    { address: '8.8.8.8', family: 4 },
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ]);
  assert.deepEqual(await ask('name.example', { all: false }), ['8.8.8.8', 4]);
});

test('one address that is not public is enough to refuse, in whatever form, and so is none at all', async (t) => {
  const four = [
    '127.0.0.1',
    '0.0.0.0',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '224.0.0.1',
  ];
  const six = [
    '0:0:0:0:0:0:0:1',
    '0:0:0:0:0:0:0:0',
    'fe80:0:0:0:0:0:0:1',
    'fd00:0:0:0:0:0:0:1',
    // 10.0.0.1, mapped, by NAT64 (of everybody and of a network's own), by 6to4 and by Teredo.
    '0:0:0:0:0:ffff:a00:1',
    '64:ff9b:0:0:0:0:a00:1',
    '64:ff9b:1:0:0:0:a00:1',
    '2002:a00:1:0:0:0:0:0',
    '2001:0:a00:1:0:0:0:0',
  ];
  for (const address of four) {
    const { ask } = await startNames(t, always(['8.8.8.8', address], [PUBLIC_V6]));
    await assert.rejects(ask('name.example'), REFUSED, address);
  }
  for (const address of six) {
    const { ask } = await startNames(t, always(['8.8.8.8'], [PUBLIC_V6, address]));
    await assert.rejects(ask('name.example', { all: false }), REFUSED, address);
  }
  const { ask } = await startNames(t, always([]));
  for (const name of ['name.example', 'localhost', 'bad name', 'x'.repeat(300), ''])
    await assert.rejects(ask(name), REFUSED);
});

test('a name that first answers publicly gains nothing: each connection asks once and uses what was checked', async (t) => {
  let answer = '8.8.8.8';
  const { ask, dns } = await startNames(t, (_, family) => (family === 4 ? [v4(answer)] : []));
  assert.deepEqual(await ask('name.example', { all: false }), ['8.8.8.8', 4]);
  answer = '127.0.0.1';
  await assert.rejects(ask('name.example'), REFUSED);
  assert.deepEqual(dns.asked.sort(), ['name.example/4', 'name.example/4', 'name.example/6', 'name.example/6']);
});

test('the socket connects to what was looked up here, and asks nobody else', async (t) => {
  const server = createServer((_, response) => response.end('here')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { lookupOf, dns } = await startNames(t, always(['127.0.0.1']));
  const { port } = server.address() as AddressInfo;
  const get = (allowPrivate: boolean) =>
    once(request({ host: 'name.example', port, lookup: lookupOf(allowPrivate), agent: false }).end(), 'response');
  const [response] = await get(true);
  assert.equal(Buffer.concat(await response.toArray()).toString(), 'here');
  await assert.rejects(get(false), REFUSED);
  assert.equal(dns.asked.length, 4);
});

test('who does not answer is left in time, and keeps nobody from the threads', async (t) => {
  const { ask } = await startNames(t, () => undefined, { timeoutMs: 150 });
  const began = performance.now();
  const slow = Array.from({ length: 100 }, (_, n) => ask(`slow-${n}.example`));
  const judged = Promise.allSettled(slow);
  // Work for a thread: with the resolver of the system it would come last.
  await promisify(pbkdf2)('password', 'salt', 1, 16, 'sha256');
  let isOver = false;
  void judged.then(() => {
    isOver = true;
  });
  await Promise.resolve();
  assert.ok(!isOver, 'all of them are still waiting');
  for (const { status } of await judged) assert.equal(status, 'rejected');
  assert.ok(performance.now() - began < 10_000);
});

test('where private addresses are allowed, so is what only this machine knows', async (t) => {
  const system: SystemNames = {
    addressesOf: async (name) => (name === 'host.internal' ? ['10.0.0.7', 'fd00::7'] : []),
    completed: async (name) => [`${name}.prod.cluster`, name],
  };
  const known = new Map(Object.entries({ 'keycloak.prod.cluster': '10.1.1.1', 'other.example': '10.2.2.2' }));
  const answers: Answers = (name, family) => (family === 4 ? [known.get(name) ?? []].flat().map(v4) : []);
  const { ask } = await startNames(t, answers, { system });
  const first = (name: string) => ask(name, { allowPrivate: true, all: false });
  assert.deepEqual(await first('localhost'), ['127.0.0.1', 4]);
  assert.deepEqual(await first('host.internal'), ['10.0.0.7', 4]);
  assert.deepEqual(await first('keycloak'), ['10.1.1.1', 4]);
  assert.deepEqual(await first('other.example'), ['10.2.2.2', 4]);
  await assert.rejects(first('nowhere'), REFUSED);
  for (const name of ['host.internal', 'keycloak']) await assert.rejects(ask(name), REFUSED);
});
