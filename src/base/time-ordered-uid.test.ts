import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timeOrderedUid } from './time-ordered-uid.ts';
import { isUid, newUid, parentOf, ROOT } from './uid.ts';

test('each uid sorts after all earlier ones, also within a millisecond and when the clock is set back', () => {
  const group = newUid(ROOT);
  const uids = [100, 100, 100, 101, 50, 100, 200].map((ms) => timeOrderedUid(group, 1_900_000_000_000 + ms));
  assert.deepEqual(uids.toSorted(), uids);
  assert.equal(new Set(uids).size, uids.length);
  for (const uid of uids) {
    assert.ok(isUid(uid), uid);
    assert.equal(parentOf(uid), group);
  }
});
