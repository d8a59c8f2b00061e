import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Code } from './errors.ts';
import { isWithin, isWithinAny, newUid, outermost, parseUid, ROOT, type Uid } from './uid.ts';

/** Uids of two small trees, in any order and with duplicates. */
const forest: Uid[] = [newUid(ROOT), newUid(ROOT)];
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

test('parseUid returns a uid as it is', () => {
  for (const uid of forest) assert.equal(parseUid('uid', uid), uid);
});

test('parseUid refuses all other texts, and names the field', () => {
  const [organization] = forest;
  const deepest = Array.from({ length: 16 }).reduce<Uid>((parent) => newUid(parent), newUid(ROOT));
  assert.equal(parseUid('uid', deepest), deepest);
  const texts = ['', ROOT, 'uid', `${organization}/`, `${organization}0`, ` ${organization}`, `${organization}\n`];
  const badParts = [`${organization}/0`, `${organization}/${'G'.repeat(16)}`, 'A'.repeat(40), newUid(deepest)];
  for (const text of [...texts, ...badParts]) {
    assert.throws(() => parseUid('parent', text), {
      code: Code.INVALID_ARGUMENT,
      message: 'Invalid argument: parent: must be a uid: 40 hex digits, then /-separated parts of 16',
    });
  }
});
