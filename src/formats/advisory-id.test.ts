import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advisoryIdFrom, isAdvisoryId } from './advisory-id.ts';

test('a derived id has the form of any other, and is always the same', () => {
  const id = advisoryIdFrom('GO-2024-0001', 'Go', 'example.com/module');
  assert.equal(id, 'CGA-xrj7-6rwf-w9jj');
  assert.ok(isAdvisoryId(id));
});

test('each package of each record has its own', () => {
  const ids = new Set<string>();
  for (let n = 0; n < 5000; n++) {
    for (const parts of [
      [`GO-${n}`, 'Go', 'a'],
      ['GO', `Go${n}`, 'a'],
      ['GO', 'Go', `a${n}`],
    ]) {
      ids.add(advisoryIdFrom(...parts));
    }
  }
  assert.equal(ids.size, 15_000);
  assert.notEqual(advisoryIdFrom('a', 'bc'), advisoryIdFrom('ab', 'c'));
});
