import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { databases, temporaryStore } from '../../../test/support/databases.ts';
import { silentLog } from '../../../test/support/server.ts';
import { bytes, push } from '../../blobs/content.testing.ts';
import { tryLock } from '../../blobs/file-lock.ts';
import { openFilesystemBlobs } from '../../blobs/filesystem.ts';
import { blobPath } from '../../blobs/layout.ts';
import { scheduleVerification } from './scheduled-verification.ts';

const DAY = 86_400_000;

async function setUp(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-scheduled-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [sqlite] = databases;
  const store = await temporaryStore(sqlite ?? assert.fail());
  t.after(() => store.close());
  const blobs = await openFilesystemBlobs(directory);
  const counted: string[] = [];
  const messages: string[] = [];
  const record = (_fields: unknown, message: string) => void messages.push(message);
  let now = Date.UTC(2026, 0, 1);
  const schedule = (bytesPerSecond = Infinity) =>
    scheduleVerification({
      ...{ db: store.reader, blobs, directory, intervalMs: 30 * DAY, bytesPerSecond, clock: () => now },
      log: { ...silentLog, info: record, error: record },
      metrics: { countDamagedBlob: (problem) => void counted.push(problem) },
    });
  const advance = (days: number) => {
    now += days * DAY;
  };
  return { directory, blobs, counted, messages, schedule, advance };
}

test('verifies once in each interval, and reports damage without changing anything', async (t) => {
  const { directory, blobs, counted, messages, schedule, advance } = await setUp(t);
  const digest = await push(blobs, bytes(100));
  await push(blobs, bytes(100, 3));
  writeFileSync(blobPath(directory, digest), bytes(100, 5));
  const verification = schedule();
  t.after(() => verification.stop());
  await verification.poll();
  advance(29);
  await verification.poll();
  assert.deepEqual(messages, [], 'not before the interval has passed');
  advance(1);
  const unlock = tryLock(join(directory, 'verify.lock')) ?? assert.fail();
  await verification.poll();
  assert.deepEqual(messages, [], 'another process verifies');
  unlock();
  await verification.poll();
  assert.deepEqual(counted, ['content']);
  assert.equal(messages.at(-1), 'verified the blobs');
  assert.deepEqual(await blobs.stat(digest), { size: 100 });
  messages.length = 0;
  await verification.poll();
  assert.deepEqual(messages, []);
  advance(30);
  await schedule().poll();
  assert.deepEqual(counted, ['content', 'content'], 'also after a restart');
});

test('is interrupted by a stop and continues after it', async (t) => {
  const { directory, blobs, messages, schedule, advance } = await setUp(t);
  for (const seed of [1, 3, 5]) await push(blobs, bytes(1_000, seed));
  await schedule().poll();
  advance(30);
  const slow = schedule(1_000);
  const polling = slow.poll();
  await slow.stop();
  await polling;
  assert.equal(messages.at(-1), 'the verification of the blobs was interrupted');
  assert.ok(readdirSync(directory).includes('verify.json'));
  await schedule().poll();
  assert.equal(messages.at(-1), 'verified the blobs');
  assert.ok(!readdirSync(directory).includes('verify.json'));
});
