import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sinkAddress, sinkProblem } from './sink-url.ts';

const PUBLIC = { allowInsecure: false, publicUrl: 'https://wharf.example.com' };
const INSECURE = { ...PUBLIC, allowInsecure: true };

test('a sink must be a public https URL', () => {
  assert.equal(sinkProblem('https://example.com/hook?key=value', PUBLIC), undefined);
  assert.equal(sinkProblem('https://8.8.8.8:8443', PUBLIC), undefined);
  const refused = [
    'http://example.com',
    'http://127.0.0.1/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest/meta-data',
    'https://[::ffff:10.0.0.1]/',
    'https://0x7f.1/',
    'https://user:password@example.com/',
    'https://example.com/#fragment',
    'file:///etc/passwd',
    'example.com',
    'https://wharf.example.com/events/v2/subscriptions',
    'https://wharf.example.com:443/',
    'https://example.com/\r\nhost: internal',
    ' https://example.com/',
    'https://example.com/a b',
    'https:\\\\example.com/',
    `https://example.com/${'x'.repeat(2048)}`,
  ];
  for (const sink of refused) assert.match(sinkProblem(sink, PUBLIC) ?? '', /^must /, sink);
});

test('allowInsecure permits private addresses, and http for this machine only', () => {
  assert.equal(sinkProblem('http://127.0.0.1:9000/', INSECURE), undefined);
  assert.equal(sinkProblem('https://10.1.2.3/', INSECURE), undefined);
  assert.match(sinkProblem('http://10.1.2.3/', INSECURE) ?? '', /https/);
});

test('a sink is sent to the address that users see', () => {
  const character = fc.integer({ min: 0, max: 0x2100 }).map((code) => String.fromCodePoint(code));
  fc.assert(
    fc.property(character, fc.nat(20), (inserted, at) => {
      const text = 'https://example.com/hook';
      const sink = `${text.slice(0, at)}${inserted}${text.slice(at)}`;
      if (sinkProblem(sink, PUBLIC) === undefined) assert.ok(!/[\s\p{Cc}\\]/u.test(sink), JSON.stringify(sink));
    }),
    { seed: 9, numRuns: 3000 },
  );
});

test('all ports of a host are one address', () => {
  assert.equal(sinkAddress('https://Example.com:8443/hook'), 'example.com');
  assert.equal(sinkAddress('https://example.com/other'), 'example.com');
});
