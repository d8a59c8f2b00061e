import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError, Code } from '../../base/errors.ts';
import { createPageTokens, skipFrom } from './page-token.ts';

const DAY = 24 * 60 * 60 * 1000;
const pageTokens = createPageTokens(randomBytes(32));
const cursor = { keys: ['app', '000001'], uid: 'a/b' };

test('returns the cursor that the token was issued for', () => {
  assert.deepEqual(pageTokens.read(pageTokens.issue(cursor, 'q', 1000), 'q', 1000 + 3 * DAY), cursor);
});

test('carries a counted total', () => {
  const counted = { ...cursor, countedTotal: { total: 7, collections: 'abc' } };
  assert.deepEqual(pageTokens.read(pageTokens.issue(counted, 'q', 0), 'q', 0), counted);
});

test('carries the number of skipped results', () => {
  const skipped = { ...cursor, skipped: 3 };
  assert.deepEqual(pageTokens.read(pageTokens.issue(skipped, 'q', 0), 'q', 0), skipped);
  const both = { ...skipped, countedTotal: { total: 0, collections: 'abc' } };
  assert.deepEqual(pageTokens.read(pageTokens.issue(both, 'q', 0), 'q', 0), both);
});

test('skip counts from the start of the list', () => {
  assert.deepEqual(skipFrom(undefined, 5), { skip: 5, skipped: 5 });
  assert.deepEqual(skipFrom({ skipped: 5 }, 5), { skip: 0, skipped: 5 });
  assert.deepEqual(skipFrom({ skipped: 5 }, 0), { skip: 0, skipped: 5 });
  assert.deepEqual(skipFrom({ skipped: 5 }, 8), { skip: 3, skipped: 8 });
  assert.deepEqual(skipFrom({}, 2), { skip: 2, skipped: 2 });
});

test('returns undefined for an expired token', () => {
  assert.equal(pageTokens.read(pageTokens.issue(cursor, 'q', 1000), 'q', 1001 + 3 * DAY), undefined);
});

test('refuses a token of another query', () => {
  assert.throws(() => pageTokens.read(pageTokens.issue(cursor, 'q', 0), 'other', 0), isInvalidToken);
});

test('refuses a token of another server', () => {
  assert.throws(() => pageTokens.read(createPageTokens(randomBytes(32)).issue(cursor, 'q', 0), 'q', 0), isInvalidToken);
});

test('refuses changed and made-up tokens', () => {
  const genuine = pageTokens.issue(cursor, 'q', 0);
  const changed = fc
    .tuple(fc.nat(genuine.length - 1), fc.constantFrom(...'abcXYZ019-_'))
    .map(([at, letter]) => genuine.slice(0, at) + letter + genuine.slice(at + 1))
    // Base64 ignores some bits of the last letter.
    .filter((token) => !Buffer.from(token, 'base64url').equals(Buffer.from(genuine, 'base64url')));
  fc.assert(
    fc.property(fc.oneof(fc.string({ minLength: 1 }), fc.base64String({ minLength: 1 }), changed), (token) => {
      assert.throws(() => pageTokens.read(token, 'q', 0), isInvalidToken);
    }),
    { seed: 7, numRuns: 2000 },
  );
});

function isInvalidToken(error: unknown): boolean {
  const [detail] = error instanceof ApiError && error.code === Code.INVALID_ARGUMENT ? error.details : [];
  return detail?.type === 'BadRequest' && detail.fieldViolations[0]?.field === 'page_token';
}
