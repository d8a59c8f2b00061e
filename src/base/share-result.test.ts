import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shareResult } from './share-result.ts';

test('calls share one result until it is too old', async () => {
  let now = 0;
  let produced = 0;
  const running = Promise.withResolvers<void>();
  const read = shareResult(
    async () => {
      await running.promise;
      return ++produced;
    },
    1_000,
    () => now,
  );
  const first = [read(), read()];
  now = 5_000;
  const late = read();
  running.resolve();
  assert.deepEqual(await Promise.all([...first, late]), [1, 1, 1], 'while it runs');
  now = 5_999;
  assert.equal(await read(), 1);
  now = 6_000;
  assert.equal(await read(), 2);
});

test('a failure is not kept', async () => {
  let calls = 0;
  const read = shareResult(async () => {
    calls++;
    if (calls === 1) throw new Error('not yet');
    return calls;
  }, 1_000);
  await assert.rejects(read(), /not yet/);
  assert.equal(await read(), 2);
});
