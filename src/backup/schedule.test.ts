import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { findDatabase, temporaryStore } from '../../test/support/databases.ts';
import { IncompleteBackupError } from './incomplete-backup.ts';
import { readSchedule, startBackupSchedule } from './schedule.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 0, 1);

/** Lets one scheduled backup fail, and returns when the next one is due. */
async function failOnce(t: TestContext, error: Error) {
  const store = await temporaryStore(findDatabase());
  t.after(() => store.close());
  const failed = Promise.withResolvers<void>();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const schedule = startBackupSchedule({
    ...{ store, clock: () => NOW, intervalMs: DAY },
    log: { debug() {}, info() {}, warn: () => assert.fail(), error: () => failed.resolve() },
    run: () => Promise.reject(error),
  });
  t.mock.timers.tick(3_000);
  await failed.promise;
  t.mock.timers.reset();
  await schedule.stop();
  return readSchedule(store);
}

test('a backup that fails is tried again soon', async (t) => {
  const state = await failOnce(t, new Error('the disk is full'));
  assert.deepEqual(state, { next: NOW + 60_000, failures: 1 });
});

test('a backup without blobs that the server has lost fails, but is not tried again before the next is due', async (t) => {
  const state = await failOnce(t, new IncompleteBackupError('complete except for 1 blob'));
  assert.deepEqual(state, { next: NOW + DAY, failures: 1 });
});
