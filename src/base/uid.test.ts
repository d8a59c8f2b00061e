import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isWithin, isWithinAny, newUid, outermost, ROOT } from './uid.ts';

/** Uids of two small trees, in any order and with duplicates. */
const forest: string[] = [newUid(ROOT), newUid(ROOT)];
for (let i = 0; i < 30; i++) forest.push(newUid(forest[Math.floor(i / 2)] ?? ROOT));
const uids = fc.array(fc.constantFrom(...forest));

test('outermost returns the uids that have no ancestor among the others, sorted', () => {
  fc.assert(
    fc.property(uids, (some) => {
      const kept = some.filter((uid) => !some.some((outer) => outer !== uid && isWithin(uid, outer)));
      assert.deepEqual(outermost(some), [...new Set(kept)].sort());
    }),
    { seed: 5, numRuns: 500 },
  );
});

test('isWithinAny finds out whether a uid is within one of the scopes', () => {
  fc.assert(
    fc.property(uids, fc.constantFrom(...forest), (some, uid) => {
      const scopes = outermost(some);
      assert.equal(
        isWithinAny(uid, scopes),
        scopes.some((scope) => isWithin(uid, scope)),
      );
    }),
    { seed: 6, numRuns: 500 },
  );
});
