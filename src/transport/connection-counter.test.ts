import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { createConnectionCounter, networkOf } from './connection-counter.ts';

const connection = (remoteAddress: string): Socket => Object.assign(new EventEmitter(), { remoteAddress }) as Socket;
const silent = { debug() {}, info() {}, warn() {}, error() {} };

test('connections are limited in total and by address, until they close', () => {
  const { admit } = createConnectionCounter({ connections: 3, connectionsPerAddress: 2 }, silent);
  const first = connection('192.0.2.1');
  assert.ok(admit(first));
  assert.ok(admit(connection('192.0.2.1')));
  assert.ok(!admit(connection('192.0.2.1')), 'the third of one address');
  assert.ok(admit(connection('192.0.2.2')));
  assert.ok(!admit(connection('192.0.2.3')), 'the fourth in total');
  first.emit('close');
  assert.ok(admit(connection('192.0.2.1')));
});

test('the log says once a minute that connections are refused, and which setting to change', () => {
  const lines: string[] = [];
  const log = { ...silent, warn: (_fields: object, message: string) => void lines.push(message) };
  const { admit } = createConnectionCounter({ connections: 5, connectionsPerAddress: 1 }, log);
  for (let i = 0; i < 10; i++) admit(connection('192.0.2.1'));
  assert.deepEqual(lines, ['too many connections; WHARF_MAX_CONNECTIONS_PER_ADDRESS is the limit']);
});

test('an IPv6 client is its /64 network, and a mapped IPv4 address is that address', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ] as const) {
    assert.equal(networkOf(address), network, address);
  }
});
