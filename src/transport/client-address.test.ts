import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { createClientAddress, peerAddress } from './client-address.ts';

const trusted = new BlockList();
trusted.addSubnet('10.0.0.0', 8, 'ipv4');
trusted.addAddress('2001:db8::1', 'ipv6');
const clientAddress = createClientAddress(trusted);

test('without trusted proxies the header is ignored', () => {
  assert.equal(peerAddress('10.0.0.1', '192.0.2.1'), '10.0.0.1');
});

test('the client is the last address that is not a trusted proxy', () => {
  for (const [peer, header, expected] of [
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['::ffff:10.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['10.0.0.1', '192.0.2.9, 192.0.2.1, 10.0.0.2', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::2', '2001:db8::2'],
    ['10.0.0.1', '[2001:db8::2]:443', '2001:db8::2'],
    ['10.0.0.1', '192.0.2.1:5000', '192.0.2.1'],
    // Another client cannot choose its address, and an entry that is no address ends the chain.
    ['192.0.2.7', '198.51.100.1', '192.0.2.7'],
    ['10.0.0.1', '192.0.2.1, unknown', '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['', '192.0.2.1', ''],
  ] as const) {
    assert.equal(clientAddress(peer, header), expected, `${peer} ${header}`);
  }
});

test('what a client sends before the last untrusted address never matters', () => {
  fc.assert(
    fc.property(fc.string(), fc.ipV4(), (sent, address) => {
      fc.pre(!address.startsWith('10.'));
      assert.equal(clientAddress('10.0.0.1', `${sent}, ${address}, 10.9.9.9`), address);
    }),
  );
});
