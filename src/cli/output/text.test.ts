import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detailsText } from './details.ts';
import { escapeForTerminal, formatValue, jsonText } from './text.ts';

test('control characters are escaped', () => {
  assert.equal(escapeForTerminal('a\u001b[2Jb\u009bc\rd\u202ee'), 'a\\u001b[2Jb\\u009bc\\u000dd\\u202ee');
  assert.equal(formatValue({ note: '\u009b' }), '{"note":"\\u009b"}');
  const value = { name: 'a\u001b\u009b\u202eb', list: ['\n'] };
  for (const isPretty of [true, false]) {
    const text = jsonText(value, isPretty);
    for (const character of ['\u001b', '\u009b', '\u202e']) assert.ok(!text.includes(character));
    assert.deepEqual(JSON.parse(text), value);
  }
});

test('JSON is one line, or indented', () => {
  assert.equal(jsonText({ a: [1] }, false), '{"a":[1]}\n');
  assert.equal(jsonText({ a: [1] }, true), '{\n  "a": [\n    1\n  ]\n}\n');
});

test('values are formatted for people', () => {
  assert.equal(formatValue('2026-01-31T12:00:00.123Z'), '2026-01-31T12:00:00Z');
  assert.equal(formatValue(['a', 2]), 'a, 2');
  assert.equal(formatValue(false), 'false');
  assert.equal(formatValue(undefined), '');
});

test('the details of a resource have one line per value', () => {
  const role = { name: 'viewer', capabilities: ['A', 'B', 'C', 'D', 'E', 'F'] };
  assert.equal(
    detailsText({ uid: 'u', capabilities: ['A', 'B'], role, claims: { 'x\u001b': '1' } }),
    [
      'uid                u',
      'capabilities       A',
      '                   B',
      'role.name          viewer',
      'role.capabilities  6 values',
      'claims.x\\u001b     1',
      '',
    ].join('\n'),
  );
});
