import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createKeyedMutex } from './keyed-mutex.ts';

test('work with one key runs one after the other, also after an error; other keys do not wait', async () => {
  const mutex = createKeyedMutex();
  const steps: string[] = [];
  const work =
    (name: string, fails = false) =>
    async (): Promise<string> => {
      steps.push(`${name} begins`);
      await nextTurn();
      steps.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    };
  const results = await Promise.allSettled([
    mutex.run('a', work('a1', true)),
    mutex.run('a', work('a2')),
    mutex.run('b', work('b1')),
    mutex.run('a', work('a3')),
  ]);
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    ['a1', 'a2', 'b1', 'a3'],
  );
  const stepsOf = (key: string): string[] => steps.filter((line) => line.startsWith(key));
  assert.deepEqual(stepsOf('a'), ['a1 begins', 'a1 ends', 'a2 begins', 'a2 ends', 'a3 begins', 'a3 ends']);
  assert.ok(steps.indexOf('b1 begins') < steps.indexOf('a1 ends'));
});
