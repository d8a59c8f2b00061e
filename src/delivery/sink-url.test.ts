import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sinkProblem } from './sink-url.ts';

test('a sink must be a public https URL', () => {
  assert.equal(sinkProblem('https://example.com/hook?key=value', false), undefined);
  assert.equal(sinkProblem('https://8.8.8.8:8443', false), undefined);
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
    `https://example.com/${'x'.repeat(2048)}`,
  ];
  for (const sink of refused) assert.match(sinkProblem(sink, false) ?? '', /^must /, sink);
});

test('allowInsecure permits private addresses, and http for this machine only', () => {
  assert.equal(sinkProblem('http://127.0.0.1:9000/', true), undefined);
  assert.equal(sinkProblem('https://10.1.2.3/', true), undefined);
  assert.match(sinkProblem('http://10.1.2.3/', true) ?? '', /https/);
});
