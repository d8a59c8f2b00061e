import assert from 'node:assert/strict';
import { pbkdf2 } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { type DnsRecords, startDns, v4, v6 } from '../../../test/support/dns.ts';
import { type GuardedLookupOptions, guardedLookup } from './guarded-lookup.ts';
import { OutgoingError } from './permitted-url.ts';
import type { ResolverConfig } from './resolver-config.ts';

const PUBLIC_V6 = '2606:4700:0:0:0:0:0:1';
const REFUSED = new OutgoingError('its host has no public address');

/** An empty hosts file and no search list. */
const emptyConfig: ResolverConfig = { hostsFileAddresses: async () => [], candidateNames: async (name) => [name] };

async function startLookup(t: TestContext, answers: DnsRecords, options: GuardedLookupOptions = {}) {
  const dns = await startDns(answers);
  t.after(() => dns.close());
  const lookupOf = (allowPrivate: boolean) =>
    guardedLookup(allowPrivate, { createResolver: () => dns.resolver(), resolverConfig: emptyConfig, ...options });
  const lookup = (hostname: string, { allowPrivate = false, all = true } = {}) =>
    new Promise<unknown>((resolve, reject) => {
      lookupOf(allowPrivate)(hostname, { all }, (error, found, family) =>
        error ? reject(error) : resolve(all ? found : [found, family]),
      );
    });
  return { dns, lookup, lookupOf };
}

/** The same records for every name. */
const always =
  (four: readonly string[], six: readonly string[] = []): DnsRecords =>
  (_, family) =>
    family === 4 ? four.map(v4) : six.map(v6);

test('public addresses are returned in the form that the socket requests', async (t) => {
  const { lookup } = await startLookup(t, always(['8.8.8.8', '1.1.1.1'], [PUBLIC_V6]));
  assert.deepEqual(await lookup('name.example'), [
    { address: '8.8.8.8', family: 4 },
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ]);
  assert.deepEqual(await lookup('name.example', { all: false }), ['8.8.8.8', 4]);
});

test('a name is refused when one of its addresses is not public, or when it has none', async (t) => {
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
    // 10.0.0.1 as mapped address, by NAT64 (well-known and local prefix), by 6to4 and by Teredo.
    '0:0:0:0:0:ffff:a00:1',
    '64:ff9b:0:0:0:0:a00:1',
    '64:ff9b:1:0:0:0:a00:1',
    '2002:a00:1:0:0:0:0:0',
    '2001:0:a00:1:0:0:0:0',
  ];
  for (const address of four) {
    const { lookup } = await startLookup(t, always(['8.8.8.8', address], [PUBLIC_V6]));
    await assert.rejects(lookup('name.example'), REFUSED, address);
  }
  for (const address of six) {
    const { lookup } = await startLookup(t, always(['8.8.8.8'], [PUBLIC_V6, address]));
    await assert.rejects(lookup('name.example', { all: false }), REFUSED, address);
  }
  const { lookup } = await startLookup(t, always([]));
  for (const name of ['name.example', 'localhost', 'bad name', 'x'.repeat(300), ''])
    await assert.rejects(lookup(name), REFUSED);
});

test('DNS rebinding has no effect: each connection resolves the name once', async (t) => {
  let answer = '8.8.8.8';
  const { lookup, dns } = await startLookup(t, (_, family) => (family === 4 ? [v4(answer)] : []));
  assert.deepEqual(await lookup('name.example', { all: false }), ['8.8.8.8', 4]);
  answer = '127.0.0.1';
  await assert.rejects(lookup('name.example'), REFUSED);
  assert.deepEqual(dns.queries.sort(), ['name.example/4', 'name.example/4', 'name.example/6', 'name.example/6']);
});

test('the socket connects to the addresses that were checked', async (t) => {
  const server = createServer((_, response) => response.end('here')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { lookupOf, dns } = await startLookup(t, always(['127.0.0.1']));
  const { port } = server.address() as AddressInfo;
  const get = (allowPrivate: boolean) =>
    once(request({ host: 'name.example', port, lookup: lookupOf(allowPrivate), agent: false }).end(), 'response');
  const [response] = await get(true);
  assert.equal(Buffer.concat(await response.toArray()).toString(), 'here');
  await assert.rejects(get(false), REFUSED);
  assert.equal(dns.queries.length, 4);
});

test('a DNS server that does not answer times out, and does not block the thread pool', async (t) => {
  const { lookup } = await startLookup(t, () => undefined, { timeoutMs: 150 });
  const began = performance.now();
  const slow = Array.from({ length: 100 }, (_, n) => lookup(`slow-${n}.example`));
  const settled = Promise.allSettled(slow);
  // Work for the thread pool. With the resolver of the system it would complete last.
  await promisify(pbkdf2)('password', 'salt', 1, 16, 'sha256');
  let isSettled = false;
  void settled.then(() => {
    isSettled = true;
  });
  await Promise.resolve();
  assert.ok(!isSettled, 'all of them are still waiting');
  for (const { status } of await settled) assert.equal(status, 'rejected');
  assert.ok(performance.now() - began < 10_000);
});

test('when private addresses are allowed, the hosts file and the search list are used', async (t) => {
  const resolverConfig: ResolverConfig = {
    hostsFileAddresses: async (name) => (name === 'host.internal' ? ['10.0.0.7', 'fd00::7'] : []),
    candidateNames: async (name) => [`${name}.prod.cluster`, name],
  };
  const records = new Map(Object.entries({ 'keycloak.prod.cluster': '10.1.1.1', 'other.example': '10.2.2.2' }));
  const answers: DnsRecords = (name, family) => (family === 4 ? [records.get(name) ?? []].flat().map(v4) : []);
  const { lookup } = await startLookup(t, answers, { resolverConfig });
  const first = (name: string) => lookup(name, { allowPrivate: true, all: false });
  assert.deepEqual(await first('localhost'), ['127.0.0.1', 4]);
  assert.deepEqual(await first('host.internal'), ['10.0.0.7', 4]);
  assert.deepEqual(await first('keycloak'), ['10.1.1.1', 4]);
  assert.deepEqual(await first('other.example'), ['10.2.2.2', 4]);
  await assert.rejects(first('nowhere'), REFUSED);
  for (const name of ['host.internal', 'keycloak']) await assert.rejects(lookup(name), REFUSED);
});
