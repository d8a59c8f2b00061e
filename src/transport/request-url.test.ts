import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { createForwarding } from './forwarding.ts';
import { followRequests } from './request-url.ts';

const FIXED = 'http://127.0.0.1:8080';
const trusted = new BlockList();
trusted.addAddress('10.0.0.1', 'ipv4');
const allowedHosts = ['localhost', '127.0.0.1', '::1', 'wharf.example.com', '*.internal', '2001:DB8::5'];
const urlOf = followRequests({ fixedUrl: FIXED, allowedHosts, readClientRequest: createForwarding(trusted) });

const request = (headers: IncomingMessage['headers'], remoteAddress = '192.0.2.9', localAddress = '192.0.2.5') =>
  ({ headers, socket: { remoteAddress, localAddress } }) as Pick<IncomingMessage, 'headers' | 'socket'>;

test('an allowed host and the address of the connection are followed, others are not', () => {
  for (const [host, expected] of [
    ['localhost:8080', 'http://localhost:8080'],
    ['LOCALHOST:08080', 'http://localhost:8080'],
    ['wharf.example.com', 'http://wharf.example.com'],
    ['wharf.example.com.', 'http://wharf.example.com.'],
    ['wharf.example.com:80', 'http://wharf.example.com:80'],
    ['a.b.internal:1', 'http://a.b.internal:1'],
    ['[2001:db8:0::5]:8080', 'http://[2001:db8::5]:8080'],
    ['192.0.2.5:8080', 'http://192.0.2.5:8080'],
    ['192.0.2.6:8080', FIXED],
    ['internal', FIXED],
    ['evil.example', FIXED],
    ['wharf.example.com.evil.example', FIXED],
    ['evil-wharf.example.com', FIXED],
    ['notinternal', FIXED],
    ['localhost:99999', FIXED],
    ['localhost"', FIXED],
    ['localhost/path', FIXED],
    ['user@localhost', FIXED],
    ['localhost, evil', FIXED],
    ['', FIXED],
    [undefined, FIXED],
  ] as const) {
    assert.equal(urlOf(request({ host })), expected, host);
  }
  assert.equal(urlOf(request({ host: '[::1]:8080' }, '::1', '::1')), 'http://[::1]:8080');
  assert.equal(urlOf(request({ host: '192.0.2.5' }, '::ffff:192.0.2.9', '::ffff:192.0.2.5')), 'http://192.0.2.5');
});

test('host and scheme of a trusted proxy are followed, those of others are ignored', () => {
  const headers = { host: 'backend:1', 'x-forwarded-host': 'wharf.example.com', 'x-forwarded-proto': 'https' };
  assert.equal(urlOf(request(headers, '10.0.0.1')), 'https://wharf.example.com');
  assert.equal(urlOf(request(headers)), FIXED);
  assert.equal(urlOf(request({ ...headers, 'x-forwarded-host': 'evil.example' }, '10.0.0.1')), FIXED);
  assert.equal(urlOf(request({ host: 'localhost', 'x-forwarded-proto': 'https' })), 'http://localhost');
  const standard = { host: 'backend:1', forwarded: 'for=192.0.2.1;host="wharf.example.com:8443";proto=https' };
  assert.equal(urlOf(request(standard, '10.0.0.1')), 'https://wharf.example.com:8443');
});

test('whatever a client sends, the result is a URL of an allowed host that fits into a quoted string', () => {
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[a-z0-9.:[\]@/"\\ -]*$/),
    fc.constantFrom(...allowedHosts).map((host) => `${host}"`),
  );
  fc.assert(
    fc.property(text, fc.constantFrom('192.0.2.9', '10.0.0.1'), (sent, peer) => {
      const url = urlOf(request({ host: sent, 'x-forwarded-host': sent, 'x-forwarded-proto': sent }, peer));
      assert.match(url, /^https?:\/\/[a-z0-9._:[\]-]+$/);
      const { hostname } = new URL(url);
      const isAllowed = [...allowedHosts, '192.0.2.5', '[::1]', '[2001:db8::5]'].includes(hostname.replace(/\.$/, ''));
      assert.ok(isAllowed || hostname.endsWith('.internal'), url);
    }),
    { numRuns: 2000 },
  );
});
