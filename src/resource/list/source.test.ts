import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromCursor, type Source } from './source.ts';

const source: Source = { from: 'range', low: 'b/', high: 'b0', checks: [] };
const ascending = { terms: [], uidDescending: false };
const descending = { terms: [], uidDescending: true };
const at = (uid: string) => ({ keys: [], uid });

test('in uid order, a source begins at the cursor', () => {
  assert.deepEqual(fromCursor(source, ascending, at('b/5')), { ...source, low: 'b/5' });
  assert.deepEqual(fromCursor(source, descending, at('b/5')), { ...source, high: 'b/5' });
});

test('a cursor in another source takes nothing away, or all', () => {
  assert.deepEqual(fromCursor(source, ascending, at('a/5')), source);
  assert.deepEqual(fromCursor(source, descending, at('c/5')), source);
  assert.deepEqual(fromCursor(source, ascending, at('c/5')), { ...source, low: 'c/5' });
});

test('without a cursor, or in another order, it stays as it is', () => {
  assert.equal(fromCursor(source, ascending, undefined), source);
  const byName = { terms: [{ field: 'name', descending: false }], uidDescending: false };
  assert.equal(fromCursor(source, byName, at('b/5')), source);
  const children: Source = { from: 'parent', parent: 'b', checks: [] };
  assert.equal(fromCursor(children, ascending, at('b/5')), children);
});
