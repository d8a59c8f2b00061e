import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTurns } from './keyed-mutex.ts';

test('work under one key runs one after the other, also after a failure; other keys do not wait', async () => {
  const inTurn = createTurns();
  const seen: string[] = [];
  const work =
    (name: string, fails = false) =>
    async (): Promise<string> => {
      seen.push(`${name} begins`);
      await nextTurn();
      seen.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
  const results = await Promise.allSettled([
    inTurn('a', work('a1', true)),
    inTurn('a', work('a2')),
    inTurn('b', work('b1')),
    inTurn('a', work('a3')),
  ]);
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    ['a1', 'a2', 'b1', 'a3'],
  );
  const under = (key: string): string[] => seen.filter((line) => line.startsWith(key));
  assert.deepEqual(under('a'), ['a1 begins', 'a1 ends', 'a2 begins', 'a2 ends', 'a3 begins', 'a3 ends']);
  assert.ok(seen.indexOf('b1 begins') < seen.indexOf('a1 ends'));
});
