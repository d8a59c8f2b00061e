import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Blobs } from './blobs.ts';
import { all, bytes, digestOf, pull, push } from './content.testing.ts';
import { openFilesystemBlobs } from './filesystem.ts';
import { verifyBlob, verifyBlobs } from './verify.ts';
import { createVerifyCursor } from './verify-cursor.ts';

describe('verification of blobs', () => {
  let root: string;
  let blobs: Blobs;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'wharf-verify-'));
    blobs = await openFilesystemBlobs(root);
  });
  afterEach(() => rm(root, { recursive: true }));

  const pathOf = (digest: string): string => {
    const [algorithm = '', hex = ''] = digest.split(':');
    return join(root, 'blobs', algorithm, hex.slice(0, 2), hex);
  };
  const problems = async (options = {}) =>
    (await all(verifyBlobs(blobs, options)))
      .filter(({ problem }) => problem !== undefined)
      .map(({ digest, problem }) => ({ digest, problem }));
  const entryOf = async (digest: string) =>
    (await all(blobs.list())).find((entry) => entry.digest === digest) ?? assert.fail();

  it('finds truncated, extended and changed blobs of both algorithms, and only those', async () => {
    const digests: string[] = [];
    for (let seed = 1; seed <= 8; seed++) {
      const content = bytes(300_000, seed);
      digests.push(await push(blobs, content, digestOf(content, seed % 2 === 0 ? 'sha256' : 'sha512')));
    }
    await push(blobs, Buffer.alloc(0));
    assert.deepEqual(await problems(), []);
    const [changed = '', truncated = '', extended = '', emptied = ''] = digests;
    const content = bytes(300_000, 1);
    content[299_999] = (content[299_999] ?? 0) ^ 1;
    await writeFile(pathOf(changed), content);
    await truncate(pathOf(truncated), 299_999);
    await truncate(pathOf(extended), 300_001);
    await truncate(pathOf(emptied), 0);
    assert.deepEqual(
      await problems(),
      [changed, truncated, extended, emptied].sort().map((digest) => ({ digest, problem: 'damaged' })),
    );
  });

  it('begins after a digest', async () => {
    for (const seed of [1, 3, 5, 7, 9]) await push(blobs, bytes(10, seed));
    const listed = (await all(blobs.list())).map(({ digest }) => digest);
    const verified = await all(verifyBlobs(blobs, { after: listed[2] }));
    assert.deepEqual(
      verified.map(({ digest }) => digest),
      listed.slice(3),
    );
  });

  it('reads no faster than the rate, and ends when it is aborted', async () => {
    for (const seed of [1, 3, 5]) await push(blobs, bytes(1_000_000, seed));
    const started = performance.now();
    const reads: number[] = [];
    await all(verifyBlobs(blobs, { bytesPerSecond: 10_000_000, onRead: (count) => void reads.push(count) }));
    assert.equal(
      reads.reduce((sum, count) => sum + count),
      3_000_000,
    );
    assert.ok(performance.now() - started >= 250, `took ${performance.now() - started} ms`);
    const stopping = new AbortController();
    const slow = verifyBlobs(blobs, { bytesPerSecond: 1, signal: stopping.signal, onRead: () => stopping.abort() });
    assert.deepEqual(await all(slow), []);
  });

  it('skips blobs that are deleted meanwhile', async () => {
    const digest = await push(blobs, bytes(10));
    const entry = await entryOf(digest);
    await blobs.remove(digest);
    assert.equal(await verifyBlob(blobs, entry), undefined);
  });

  it('moves a damaged blob to the quarantine, and a push replaces it', async () => {
    const content = bytes(1000);
    const digest = await push(blobs, content);
    await truncate(pathOf(digest), 3);
    const entry = await entryOf(digest);
    assert.equal(await blobs.quarantine(entry), true);
    assert.equal(await blobs.stat(digest), undefined);
    const aside = join(root, 'quarantine', digest.replace(':', '-'));
    assert.equal((await stat(aside)).size, 3);
    assert.equal((await stat(join(root, 'quarantine'))).mode & 0o777, 0o700);
    assert.equal(await blobs.quarantine(entry), false, 'it does not exist any more');
    await push(blobs, content);
    assert.deepEqual(await pull(blobs, digest), content);
    assert.deepEqual(await problems(), []);
  });

  it('does not move a blob that was pushed again after it was listed', async () => {
    let now = 1_000_000;
    blobs = await openFilesystemBlobs(root, { clock: () => now });
    const digest = await push(blobs, bytes(10));
    const entry = await entryOf(digest);
    now += 1;
    await push(blobs, bytes(10));
    assert.equal(await blobs.quarantine(entry), false);
    assert.deepEqual(await pull(blobs, digest), bytes(10));
    assert.deepEqual(await readdir(join(root, 'quarantine')), []);
  });

  it('stores its progress in a file, and ignores a damaged one', async () => {
    const cursor = createVerifyCursor(root);
    assert.equal(await cursor.read(), undefined);
    const progress = { after: digestOf(bytes(1)), blobs: 3, bytes: 7, problems: [] };
    await cursor.write(progress);
    assert.deepEqual(await createVerifyCursor(root).read(), progress);
    await writeFile(join(root, 'verify.json'), '{"after":');
    assert.equal(await cursor.read(), undefined);
    await cursor.clear();
    await cursor.clear();
  });
});
