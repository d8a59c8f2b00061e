import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { shared } from './shared.ts';

/** A read that answers when told to, with how many began before it. */
function watched() {
  const begun: PromiseWithResolvers<number>[] = [];
  const read = shared(() => {
    const one = Promise.withResolvers<number>();
    begun.push(one);
    return one.promise;
  });
  const answer = (at: number) => begun[at]?.resolve(at);
  return { read, begun, answer };
}

test('who asks while a read is under way gets one that begins later, all of them the same', async () => {
  const { read, begun, answer } = watched();
  const first = read();
  const [second, third] = [read(), read()];
  assert.equal(begun.length, 1);
  answer(0);
  assert.equal(await first, 0);
  await turn();
  assert.equal(begun.length, 2);
  const fourth = read();
  answer(1);
  assert.deepEqual(await Promise.all([second, third]), [1, 1]);
  await turn();
  answer(2);
  assert.equal(await fourth, 2);
  assert.equal(begun.length, 3);
});

test('a failure is that of those who asked for it', async () => {
  const { read, begun, answer } = watched();
  const [first, second] = [read(), read()];
  begun[0]?.reject(new Error('gone'));
  await assert.rejects(Promise.resolve(first), /gone/);
  await turn();
  answer(1);
  assert.equal(await second, 1);
});

test('what comes at once comes at once', () => {
  let reads = 0;
  const read = shared(() => ++reads);
  assert.deepEqual([read(), read()], [1, 2]);
});
