import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBackgroundThread, TaskLimitError } from './background-thread.ts';

const start = (taskMs = 20_000) =>
  createBackgroundThread<unknown, unknown>(new URL('./background-thread.testing.ts', import.meta.url), {
    taskMs,
  });

test('tasks run one after the other, and return results and errors', async () => {
  const thread = start();
  const results = await Promise.allSettled([
    thread.run({ echo: 1 }),
    thread.run({ fail: 'x' }),
    thread.run({ echo: 2 }),
  ]);
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    [1, 'x', 2],
  );
});

test('a task that never ends is stopped, and later tasks run', async () => {
  const thread = start(1_000);
  const results = await Promise.allSettled([thread.run({ loop: true }), thread.run({ echo: 'later' })]);
  assert.ok(results[0].status === 'rejected' && results[0].reason instanceof TaskLimitError);
  assert.equal((results[1] as PromiseFulfilledResult<unknown>).value, 'later');
});

test('too many waiting tasks are refused', async () => {
  const thread = start();
  const results = await Promise.allSettled(Array.from({ length: 110 }, (_, at) => thread.run({ echo: at })));
  const refused = results.filter((result) => result.status === 'rejected');
  assert.equal(refused.length, 9);
  assert.match(String(refused[0]?.reason), /Unavailable/);
});
