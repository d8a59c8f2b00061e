import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { partBytes, splitIntoParts } from './multipart.ts';

test('parts have the required sizes and together the bytes of the source', async () => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 30 }));
  await fc.assert(
    fc.asyncProperty(chunks, fc.integer({ min: 1, max: 20 }), async (source, size) => {
      const parts: Uint8Array[] = [];
      const lasts: boolean[] = [];
      async function* stream() {
        yield* source;
      }
      for await (const { part, isLast } of splitIntoParts(stream(), () => size)) {
        parts.push(part);
        lasts.push(isLast);
      }
      assert.deepEqual(Buffer.concat(parts), Buffer.concat(source));
      assert.ok(parts.slice(0, -1).every(({ length }) => length === size));
      assert.deepEqual(lasts, [...parts.slice(1).map(() => false), true]);
    }),
  );
});

test('ten thousand parts suffice for the largest object, and none is too small', () => {
  let total = 0;
  for (let number = 1; number <= 10_000; number++) {
    assert.ok(partBytes(number) >= 5 * 2 ** 20 && partBytes(number) <= 5 * 2 ** 30);
    total += partBytes(number);
  }
  assert.ok(total >= 5 * 2 ** 40);
});
