import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { assertCheap } from './cpu-time.testing.ts';
import { hasMoreValues } from './json-values.ts';

/** The number of values, where an empty list or object counts as two. */
function count(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  const inner = Object.values(value);
  return 1 + (inner.length === 0 ? 1 : inner.reduce((sum: number, each) => sum + count(each), 0));
}

/** Long enough that the text is always read. */
const SPACE = ' '.repeat(10_000);

test('every value of a JSON text is counted, whatever its strings contain', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('"', '\\', ',', '[', '{', 'a') }));
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.array(text), (value, strings) => {
      const json = [value, ...strings];
      const exact = count(json);
      const encoded = JSON.stringify(json) + SPACE;
      assert.equal(hasMoreValues(encoded, exact), false);
      assert.equal(hasMoreValues(encoded, exact - 1), true);
    }),
    { seed: 14 },
  );
});

test('a short text need not be read', () => {
  assert.equal(hasMoreValues('[1,1,1,1,1]', 6), false);
  assert.equal(hasMoreValues('[1,1,1,1,1]', 5), true);
});

test('a text that is not JSON is read too', () => {
  for (const char of '"[{,\\') hasMoreValues(char.repeat(1000), 100);
  assert.equal(hasMoreValues('{'.repeat(1000), 100), true);
});

test('counting takes little time for any text of 4 MiB', () => {
  for (const part of ['"', '\\"', 'a', '"a"', '"\\\\"', ' ']) {
    const text = part.repeat(4_194_304 / part.length);
    assertCheap(() => hasMoreValues(text, 100), part);
    assertCheap(() => hasMoreValues(`"${text}`, 100), `"${part}`);
  }
});
