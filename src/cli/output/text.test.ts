import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detailsText } from './details.ts';
import { jsonText, plain, visible } from './text.ts';

test('nothing that a terminal obeys comes through', () => {
  assert.equal(visible('a\u001b[2Jb\u009bc\rd\u202ee'), 'a\\u001b[2Jb\\u009bc\\u000dd\\u202ee');
  assert.equal(plain({ note: '\u009b' }), '{"note":"\\u009b"}');
  const value = { name: 'a\u001b\u009b\u202eb', list: ['\n'] };
  for (const forPerson of [true, false]) {
    const text = jsonText(value, forPerson);
    for (const treacherous of ['\u001b', '\u009b', '\u202e']) assert.ok(!text.includes(treacherous));
    assert.deepEqual(JSON.parse(text), value);
  }
});

test('JSON is one line for programs and indented for people', () => {
  assert.equal(jsonText({ a: [1] }, false), '{"a":[1]}\n');
  assert.equal(jsonText({ a: [1] }, true), '{\n  "a": [\n    1\n  ]\n}\n');
});

test('values as people read them', () => {
  assert.equal(plain('2026-01-31T12:00:00.123Z'), '2026-01-31T12:00:00Z');
  assert.equal(plain(['a', 2]), 'a, 2');
  assert.equal(plain(false), 'false');
  assert.equal(plain(undefined), '');
});

test('the details of a resource, one value a line', () => {
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
