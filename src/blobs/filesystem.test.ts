import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { all, bytes, chunked, digestOf, failing, pull, push } from './content.testing.ts';
import { type FilesystemOptions, openFilesystemBlobs } from './filesystem.ts';
import type { TestStorage } from './storage.testing.ts';
import { blobsSuite } from './suite.testing.ts';
import { anyOrderCases } from './suite-any-order.testing.ts';

const temporary = (): Promise<string> => mkdtemp(join(tmpdir(), 'wharf-blobs-'));

const storageWith = (options: FilesystemOptions) => async (): Promise<TestStorage> => {
  const root = await temporary();
  return {
    open: (clock) => openFilesystemBlobs(root, { ...options, ...(clock && { clock }) }),
    remove: () => rm(root, { recursive: true }),
  };
};

blobsSuite('the file system', storageWith({}));
anyOrderCases('a file system with one cached hash', storageWith({ cachedHashes: 1 }));

describe('blobs as files', () => {
  let root: string;
  beforeEach(async () => {
    root = await temporary();
  });
  afterEach(() => rm(root, { recursive: true }));

  const pathOf = (digest: string): string => join(root, 'blobs', 'sha256', digest.slice(7, 9), digest.slice(7));

  it('are uploaded by one request at a time, over all processes', async () => {
    const [one, other] = [await openFilesystemBlobs(root), await openFilesystemBlobs(root)];
    const id = await one.begin();
    const content = bytes(10);
    const { promise: open, resolve: finish } = Promise.withResolvers<void>();
    async function* slow() {
      yield content;
      await open;
    }
    const appending = one.append(id, 0, slow());
    await assert.rejects(other.append(id, 0, chunked(bytes(10, 2))), failing({ reason: 'busy' }));
    await assert.rejects(other.cancel(id), failing({ reason: 'busy' }));
    finish();
    await appending;
    await other.append(id, 10, chunked(content));
    const digest = digestOf(Buffer.concat([content, content]));
    await one.finish(id, digest);
    assert.deepEqual(await pull(other, digest), Buffer.concat([content, content]));
    assert.deepEqual(await readdir(join(root, 'locks')), []);
  });

  it('delete the lock files of a killed process', async () => {
    const id = await (await openFilesystemBlobs(root)).begin();
    await writeFile(join(root, 'locks', id), '');
    await writeFile(join(root, 'locks', 'of a deleted upload'), '');
    await openFilesystemBlobs(root);
    assert.deepEqual(await readdir(join(root, 'locks')), [id]);
  });

  it('have private modes, and the paths of the layout', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(10));
    const id = await blobs.begin();
    assert.equal((await stat(pathOf(digest))).mode & 0o777, 0o600);
    assert.equal((await stat(join(root, 'blobs'))).mode & 0o777, 0o700);
    assert.deepEqual(await readdir(join(root, 'uploads')), [id]);
  });

  it('ignore other files in their directories', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(10));
    await writeFile(`${pathOf(digest)}.part`, '');
    await writeFile(join(root, 'blobs', 'sha256', '.DS_Store'), '');
    await writeFile(join(root, 'uploads', 'lost+found'), '');
    assert.equal((await all(blobs.list())).length, 1);
    assert.deepEqual(await all(blobs.uploads()), []);
  });

  it('update the time of an upload with each append', async () => {
    const blobs = await openFilesystemBlobs(root);
    const id = await blobs.begin();
    await utimes(join(root, 'uploads', id), 1_000, 1_000);
    assert.deepEqual(await all(blobs.uploads()), [{ id, size: 0, changed: 1_000_000 }]);
    await blobs.append(id, 0, chunked(bytes(1)));
    assert.ok((await all(blobs.uploads())).every(({ changed }) => changed > 1_700_000_000_000));
  });

  it('are hashed again if the file does not match the cached hash', async () => {
    const blobs = await openFilesystemBlobs(root);
    const content = bytes(1_000);
    const id = await blobs.begin();
    await blobs.append(id, 0, chunked(content));
    await truncate(join(root, 'uploads', id), 600);
    const mismatch = { reason: 'mismatch', expected: digestOf(content), actual: digestOf(content.subarray(0, 600)) };
    await assert.rejects(blobs.finish(id, digestOf(content)), { name: 'BlobError', failure: mismatch });
  });

  it('fail when they are truncated while they are read', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(2_000_000));
    const [copying, streaming] = [await blobs.open(digest), await blobs.open(digest)];
    await truncate(pathOf(digest), 1_500_000);
    const failed = failing({ reason: 'failed' });
    await assert.rejects(
      copying.copyTo(async () => {}),
      failed,
    );
    await assert.rejects(streaming.stream().toArray(), failed);
  });

  const cannotCount = process.platform !== 'linux' && 'open files are counted by /proc';
  it('leave no file open, however a reader ends', { skip: cannotCount }, async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(2_000_000));
    const open = async (): Promise<number> => (await readdir('/proc/self/fd')).length;
    const before = await open();
    await pull(blobs, digest);
    await (await blobs.open(digest)).close();
    await (await blobs.open(digest)).stream().toArray();
    for await (const _ of (await blobs.open(digest)).stream()) break;
    await assert.rejects((await blobs.open(digest)).copyTo(() => Promise.reject(new Error('disconnected'))));
    await assert.rejects(blobs.open(digest, { start: 9_000_000, end: 9_000_001 }));
    assert.equal(await open(), before);
  });

  it('do not show errors of the operating system', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(10));
    await rm(root, { recursive: true });
    await writeFile(root, 'not a directory');
    for (const call of [
      () => blobs.begin(),
      () => blobs.stat(digest),
      () => blobs.open(digest),
      () => blobs.remove(digest),
      () => blobs.offset(crypto.randomUUID()),
      () => blobs.finish(crypto.randomUUID(), digest),
      () => all(blobs.list()),
      () => all(blobs.uploads()),
    ]) {
      const failed = { ...failing({ reason: 'failed' }), message: 'the storage for blobs failed' };
      await assert.rejects(call, failed, String(call));
    }
  });
});
