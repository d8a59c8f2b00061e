import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deriveAdvisoryId, isAdvisoryId } from './advisory-id.ts';

test('a derived id is valid and always the same', () => {
  const id = deriveAdvisoryId('GO-2024-0001', 'Go', 'example.com/module');
  assert.equal(id, 'CGA-xrj7-6rwf-w9jj');
  assert.ok(isAdvisoryId(id));
});

test('each package of each record has an id of its own', () => {
  const ids = new Set<string>();
  for (let n = 0; n < 5000; n++) {
    for (const parts of [
      [`GO-${n}`, 'Go', 'a'],
      ['GO', `Go${n}`, 'a'],
      ['GO', 'Go', `a${n}`],
    ]) {
      ids.add(deriveAdvisoryId(...parts));
    }
  }
  assert.equal(ids.size, 15_000);
  assert.notEqual(deriveAdvisoryId('a', 'bc'), deriveAdvisoryId('ab', 'c'));
});
