import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createBatcher } from './read-batcher.ts';

/** Waits until the loads of a finished batch have resolved and the next batch has started. */
async function nextBatch(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** A batcher whose batches finish when the test says so. Each load returns the number of its batch. */
function controlledBatcher() {
  const batches: (PromiseWithResolvers<void> & { readonly keys: string[] })[] = [];
  const time = { now: 0 };
  const loadBatch = async (keys: readonly string[]) => {
    const number = batches.length;
    const finished = Promise.withResolvers<void>();
    batches.push({ ...finished, keys: [...keys] });
    await finished.promise;
    return keys.map(() => number);
  };
  const { load, isIdle } = createBatcher(loadBatch, () => time.now);
  return { load, isIdle, batches, time, keys: () => batches.map(({ keys }) => keys) };
}

test('loads of one turn form a batch, and loads that arrive meanwhile form the next one', async () => {
  const { load, batches, keys, isIdle } = controlledBatcher();
  const values = ['a', 'b'].map(load);
  await nextBatch();
  assert.deepEqual(keys(), [['a', 'b']]);
  values.push(load('c'));
  await nextBatch();
  values.push(load('d'));
  assert.equal(batches.length, 1);
  batches[0]?.resolve();
  await nextBatch();
  assert.deepEqual(keys(), [
    ['a', 'b'],
    ['c', 'd'],
  ]);
  assert.ok(!isIdle());
  batches[1]?.resolve();
  assert.deepEqual(await Promise.all(values), [0, 0, 1, 1]);
  await nextBatch();
  assert.ok(isIdle());
});

test('a slow batch does not delay later loads for long', async () => {
  const { load, batches, time, keys } = controlledBatcher();
  const slow = load('slow');
  await nextBatch();
  const waiting = load('waiting');
  time.now += 30;
  const later = load('later');
  await nextBatch();
  assert.deepEqual(keys(), [['slow'], ['waiting', 'later']]);
  batches[1]?.resolve();
  assert.deepEqual(await Promise.all([waiting, later]), [1, 1]);
  batches[0]?.resolve();
  assert.equal(await slow, 0);
});

test('an error rejects the loads of its batch and no others', async () => {
  const { load, batches } = controlledBatcher();
  const failing = ['a', 'b'].map(load);
  await nextBatch();
  const last = load('c');
  batches[0]?.reject(new Error('connection lost'));
  for (const one of failing) await assert.rejects(one, /connection lost/);
  await nextBatch();
  batches[1]?.resolve();
  assert.equal(await last, 1);
});

test('a batch has a limited size', async () => {
  const { load, batches, keys } = controlledBatcher();
  const values = Array.from({ length: 202 }, (_, at) => load(String(at)));
  for (let at = 0; at < 3; at++) {
    await nextBatch();
    batches[at]?.resolve();
  }
  assert.deepEqual(
    keys().map(({ length }) => length),
    [100, 100, 2],
  );
  await Promise.all(values);
});
