import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pollUntil } from '../../test/support/poll-until.ts';
import { openDirectoryTarget } from './directory-target.ts';
import { beginRun } from './runs.ts';
import type { BackupTarget } from './target.ts';

const RENEW_MS = 20_000;
const MINUTE = 60_000;

/** A run that creates a backup, and another run on the same target. */
async function beginTwo(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'wharf-runs-'));
  t.mock.timers.enable({ apis: ['setInterval'] });
  let now = 0;
  let writes = 0;
  const target = openDirectoryTarget(root, 'first');
  const counting: BackupTarget = {
    ...target,
    async write(key, content) {
      await target.write(key, content);
      writes++;
    },
  };
  const run = await beginRun(counting, 'first', 'create', () => now);
  const other = await beginRun(openDirectoryTarget(root, 'second'), 'second', 'prune', () => now);
  t.after(async () => {
    await run.end();
    await other.end();
    rmSync(root, { recursive: true });
  });
  return {
    ...{ run, other },
    advance: (ms: number): void => {
      now += ms;
    },
    async renew() {
      const before = writes;
      t.mock.timers.tick(RENEW_MS);
      await pollUntil(
        async () => writes,
        (count) => count > before,
      );
    },
  };
}

test('a run that is renewed in time is live', async (t) => {
  const { run, other, advance, renew } = await beginTwo(t);
  for (let minutes = 0; minutes < 6; minutes += 2) {
    advance(2 * MINUTE);
    await renew();
  }
  assert.deepEqual(
    (await other.others()).map(({ id }) => id),
    ['first'],
  );
  await run.requireLive();
});

test('a run that was suspended for too long is not live, although it is renewed afterwards', async (t) => {
  const { run, advance, renew } = await beginTwo(t);
  advance(4 * MINUTE);
  await renew();
  await assert.rejects(run.requireLive(), /run the command again/);
});

test('a run that another host took for dead is not live, although it is renewed afterwards', async (t) => {
  const { run, other, advance, renew } = await beginTwo(t);
  // The clock of the other host is ahead.
  advance(4 * MINUTE);
  assert.deepEqual(await other.others(), []);
  advance(-4 * MINUTE);
  await renew();
  await assert.rejects(run.requireLive(), /run the command again/);
});
