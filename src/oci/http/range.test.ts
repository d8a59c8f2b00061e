import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chunkRangeOf, rangeOf } from './range.ts';

test('every form of a single byte range is parsed', () => {
  assert.deepEqual(rangeOf('bytes=0-0', 10), { start: 0, end: 0 });
  assert.deepEqual(rangeOf('bytes=2-', 10), { start: 2, end: 9 });
  assert.deepEqual(rangeOf('bytes=-3', 10), { start: 7, end: 9 });
  assert.deepEqual(rangeOf('bytes=-30', 10), { start: 0, end: 9 });
  assert.deepEqual(rangeOf('Bytes=5-99999999999999999999999', 10), { start: 5, end: 9 });
});

test('other Range headers are ignored', () => {
  for (const header of [undefined, '', 'bytes', 'bytes=', 'bytes=-', 'lines=1-2', 'bytes=1-2,4-5', 'bytes=a-b']) {
    assert.equal(rangeOf(header, 10), undefined, header);
  }
});

test('a range outside of the blob is refused with the size of the blob', () => {
  for (const [header, size] of [
    ['bytes=10-', 10],
    ['bytes=5-2', 10],
    ['bytes=-0', 10],
    ['bytes=0-', 0],
    ['bytes=-1', 0],
  ] as const) {
    assert.throws(() => rangeOf(header, size), { status: 416, headers: { 'content-range': `bytes */${size}` } });
  }
});

test('an accepted range always lies within the blob', () => {
  const bound = fc.oneof(fc.constant(''), fc.nat(20).map(String), fc.constant('9'.repeat(30)));
  fc.assert(
    fc.property(bound, bound, fc.nat(20), (first, last, size) => {
      try {
        const range = rangeOf(`bytes=${first}-${last}`, size);
        if (range) assert.ok(range.start >= 0 && range.start <= range.end && range.end < size);
      } catch (error) {
        assert.equal((error as { status?: number }).status, 416);
      }
    }),
    { seed: 4 },
  );
});

test('the Content-Range of a chunk must match its length', () => {
  assert.equal(chunkRangeOf(undefined, 5), undefined);
  assert.deepEqual(chunkRangeOf('0-4', 5), { start: 0, end: 4 });
  assert.deepEqual(chunkRangeOf('bytes 10-14/*', undefined), { start: 10, end: 14 });
  for (const header of ['0-5', '4-0', 'x', '', '0-', '-4', '0-4-8', '1e1-2e1']) {
    assert.throws(() => chunkRangeOf(header, 5), { status: 400 }, header);
  }
});
