import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createMessageFollower } from './message-follower.ts';

const frame = (length: number, isCompressed = false): Buffer => {
  const bytes = Buffer.alloc(5 + length, 7);
  bytes.writeUInt8(isCompressed ? 1 : 0, 0);
  bytes.writeUInt32BE(length, 1);
  return bytes;
};

test('a message is complete with its last byte, however it is divided', () => {
  const messages = fc.array(fc.record({ length: fc.nat(40), isCompressed: fc.boolean() }), { minLength: 1 });
  fc.assert(
    fc.property(messages, fc.infiniteStream(fc.integer({ min: 1, max: 20 })), (expected, sizes) => {
      const follower = createMessageFollower();
      const bytes = Buffer.concat(expected.map(({ length, isCompressed }) => frame(length, isCompressed)));
      let ends = 0;
      const complete = new Set(expected.map(({ length }) => (ends += 5 + length)));
      let largest = 0;
      let sawCompressed = false;
      for (let at = 0; at < bytes.length; ) {
        const size = Math.min(sizes.next().value ?? 1, bytes.length - at);
        const started = follower.receive(bytes.subarray(at, at + size));
        at += size;
        largest = Math.max(largest, started?.length ?? 0);
        sawCompressed ||= started?.isCompressed === true;
        assert.equal(follower.isComplete, complete.has(at), `after ${at} bytes`);
      }
      assert.equal(largest, Math.max(...expected.map(({ length }) => length)));
      assert.equal(
        sawCompressed,
        expected.some(({ isCompressed }) => isCompressed),
      );
    }),
  );
});

test('the length is read as an unsigned number', () => {
  const follower = createMessageFollower();
  assert.deepEqual(follower.receive(Buffer.from([0, 0xff, 0xff, 0xff, 0xff])), {
    isCompressed: false,
    length: 0xffffffff,
  });
  assert.ok(!follower.isComplete);
});
