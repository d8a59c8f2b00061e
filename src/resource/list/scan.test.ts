import assert from 'node:assert/strict';
import { test } from 'node:test';
import { divideIntoStatements, type Scan, startAtCursor } from './scan.ts';

const scan: Scan = { from: 'range', low: 'b/', high: 'b0', checks: [] };
const ascending = { terms: [], uidDescending: false };
const descending = { terms: [], uidDescending: true };
const at = (uid: string) => ({ keys: [], uid });

test('a scan in uid order begins at the cursor', () => {
  assert.deepEqual(startAtCursor(scan, ascending, at('b/5')), { ...scan, low: 'b/5' });
  assert.deepEqual(startAtCursor(scan, descending, at('b/5')), { ...scan, high: 'b/5' });
});

test('a scan after the cursor stays as it is, and one before it becomes empty', () => {
  assert.deepEqual(startAtCursor(scan, ascending, at('a/5')), scan);
  assert.deepEqual(startAtCursor(scan, descending, at('c/5')), scan);
  assert.deepEqual(startAtCursor(scan, ascending, at('c/5')), { ...scan, low: 'c/5' });
});

test('a scan without a cursor, or in another order, stays as it is', () => {
  assert.equal(startAtCursor(scan, ascending, undefined), scan);
  const byName = { terms: [{ field: 'name', descending: false }], uidDescending: false };
  assert.equal(startAtCursor(scan, byName, at('b/5')), scan);
  const children: Scan = { from: 'parent', parent: 'b', checks: [] };
  assert.equal(startAtCursor(children, ascending, at('b/5')), children);
});

test('the scans of one collection stay in one statement', () => {
  const scansOf = (collection: number, count: number): Scan[] =>
    Array.from({ length: count }, (_, i) => ({
      from: 'list',
      list: collection * 1000 + i,
      parent: undefined,
      checks: [],
    }));
  const collections = [scansOf(1, 100), [], scansOf(2, 28), scansOf(3, 1), scansOf(4, 300)];
  assert.deepEqual(
    divideIntoStatements(collections).map(({ length }) => length),
    [128, 1, 300],
  );
  assert.deepEqual(divideIntoStatements(collections).flat(), collections.flat());
});
