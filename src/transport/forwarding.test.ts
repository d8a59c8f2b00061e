import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { createForwarding, type ForwardingHeaders, peerAddress } from './forwarding.ts';

const trusted = new BlockList();
trusted.addSubnet('10.0.0.0', 8, 'ipv4');
trusted.addAddress('2001:db8::1', 'ipv6');
const readClient = createForwarding(trusted);
const addressOf = (peer: string, headers: ForwardingHeaders): string => readClient(peer, headers).address;

test('without trusted proxies the headers are ignored', () => {
  assert.equal(peerAddress('10.0.0.1', { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' }), '10.0.0.1');
});

test('the client is the last address that is not a trusted proxy', () => {
  for (const [peer, addresses, expected] of [
    ['10.0.0.1', [], '10.0.0.1'],
    ['10.0.0.1', ['192.0.2.1'], '192.0.2.1'],
    ['::ffff:10.0.0.1', ['192.0.2.1'], '192.0.2.1'],
    ['10.0.0.1', ['192.0.2.9', '192.0.2.1', '10.0.0.2'], '192.0.2.1'],
    ['2001:db8::1', ['[2001:db8::2]'], '2001:db8::2'],
    ['10.0.0.1', ['[2001:db8::2]:443'], '2001:db8::2'],
    ['10.0.0.1', ['[2001:db8::2]:_port'], '2001:db8::2'],
    ['10.0.0.1', ['192.0.2.1:5000'], '192.0.2.1'],
    // Another client cannot choose its address, and an entry that is no address ends the chain.
    ['192.0.2.7', ['198.51.100.1'], '192.0.2.7'],
    ['10.0.0.1', ['192.0.2.1', 'unknown'], '10.0.0.1'],
    ['10.0.0.1', ['192.0.2.1', '_hidden', '10.0.0.2'], '10.0.0.2'],
    ['10.0.0.1', [''], '10.0.0.1'],
    ['10.0.0.1', ['10.0.0.3', '10.0.0.2'], '10.0.0.3'],
    ['', ['192.0.2.1'], ''],
  ] as const) {
    const message = `${peer} ${addresses}`;
    const forwarded = addresses.map((address) => `for="${address}"`).join(', ');
    assert.equal(addressOf(peer, { forwarded }), expected, message);
    if (addresses.length === 0) continue;
    const list = addresses.join(', ');
    assert.equal(addressOf(peer, { 'x-forwarded-for': list }), expected, message);
    assert.equal(addressOf(peer, { 'x-forwarded-for': list, forwarded }), expected, message);
  }
  assert.equal(addressOf('2001:db8::1', { 'x-forwarded-for': '2001:db8::2' }), '2001:db8::2');
});

test('host and scheme are those that the client has used at the outermost trusted proxy', () => {
  for (const [peer, headers, host, scheme] of [
    ['10.0.0.1', { forwarded: 'for=192.0.2.1;host=a.example;proto=https' }, 'a.example', 'https'],
    ['10.0.0.1', { forwarded: 'for=192.0.2.1;host=a;proto=HTTPS, for=10.0.0.2;host=b;proto=http' }, 'a', 'https'],
    // The client has sent the first element itself.
    ['10.0.0.1', { forwarded: 'for=10.0.0.9;host=evil;proto=http, for=192.0.2.1;host=a;proto=https' }, 'a', 'https'],
    ['10.0.0.1', { forwarded: 'host=evil, for=unknown;host=a' }, 'a', undefined],
    ['10.0.0.1', { forwarded: 'for=192.0.2.1;proto=gopher' }, undefined, undefined],
    ['10.0.0.1', { 'x-forwarded-host': 'a.example', 'x-forwarded-proto': 'https' }, 'a.example', 'https'],
    ['10.0.0.1', { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'http, https' }, undefined, 'https'],
    [
      '10.0.0.1',
      { 'x-forwarded-for': '192.0.2.1, 10.0.0.2', 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'a, b' },
      'a',
      'https',
    ],
    ['10.0.0.1', { 'x-forwarded-for': '192.0.2.1, 10.0.0.2', 'x-forwarded-proto': 'https' }, undefined, 'https'],
    // Both kinds of headers, one of them written by the client.
    ['10.0.0.1', { forwarded: 'for=192.0.2.1;host=evil', 'x-forwarded-host': 'a' }, undefined, undefined],
    ['10.0.0.1', { forwarded: 'for="', 'x-forwarded-host': 'a' }, undefined, undefined],
    // A client that is no proxy.
    ['192.0.2.1', { forwarded: 'for=a;host=evil;proto=http', 'x-forwarded-host': 'evil' }, undefined, undefined],
  ] as const) {
    const client = readClient(peer, headers);
    assert.deepEqual([client.host, client.scheme], [host, scheme], JSON.stringify(headers));
  }
});

test('what a client sends before the last untrusted address never matters', () => {
  fc.assert(
    fc.property(fc.string(), fc.ipV4(), (sent, address) => {
      fc.pre(!address.startsWith('10.'));
      assert.equal(addressOf('10.0.0.1', { 'x-forwarded-for': `${sent}, ${address}, 10.9.9.9` }), address);
    }),
  );
});

test('a client cannot choose its address by the header that its proxy does not write', () => {
  const headerText = fc.oneof(
    fc.string(),
    fc.ipV4().map((address) => `for=${address}`),
    fc.ipV4(),
    fc.constant('for=192.0.2.1'),
  );
  fc.assert(
    fc.property(headerText, fc.constantFrom('forwarded', 'x-forwarded-for'), (sent, own) => {
      const headers =
        own === 'forwarded'
          ? { forwarded: `${sent}, for=192.0.2.1`, 'x-forwarded-for': sent }
          : { 'x-forwarded-for': '192.0.2.1', forwarded: sent };
      // The true address, or that of the proxy, which then counts as the client.
      assert.ok(['192.0.2.1', '10.0.0.1'].includes(addressOf('10.0.0.1', headers)));
    }),
    { numRuns: 1000 },
  );
});
