import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createByteCollector } from './byte-collector.ts';

test('the bytes are those of all chunks in order', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9_000 })), (chunks) => {
      const buffers = chunks.map((chunk) => Buffer.from(chunk));
      const collector = createByteCollector();
      for (const buffer of buffers) collector.add(buffer);
      assert.deepEqual(collector.bytes(), Buffer.concat(buffers));
      assert.equal(collector.size, collector.bytes().length);
      assert.deepEqual(
        buffers,
        chunks.map((chunk) => Buffer.from(chunk)),
        'the chunks are not changed',
      );
    }),
  );
});
