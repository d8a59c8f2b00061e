import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { all, bytes, chunked, digestOf, failing, pull, push } from './content.testing.ts';
import { type FilesystemOptions, openFilesystemBlobs } from './filesystem.ts';
import { blobsSuite, type Storage } from './suite.testing.ts';
import { anyOrderCases } from './suite-any-order.testing.ts';

const temporary = (): Promise<string> => mkdtemp(join(tmpdir(), 'wharf-blobs-'));

const storageWith = (options: FilesystemOptions) => async (): Promise<Storage> => {
  const root = await temporary();
  return {
    open: (clock) => openFilesystemBlobs(root, { ...options, ...(clock && { clock }) }),
    remove: () => rm(root, { recursive: true }),
  };
};

blobsSuite('the file system', storageWith({}));
anyOrderCases('a file system with room for one live hash', storageWith({ liveHashes: 1 }));

describe('blobs as files', () => {
  let root: string;
  beforeEach(async () => {
    root = await temporary();
  });
  afterEach(() => rm(root, { recursive: true }));

  const pathOf = (digest: string): string => join(root, 'blobs', 'sha256', digest.slice(7, 9), digest.slice(7));

  it('are uploaded by one request at a time, whichever process it came to', async () => {
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

  it('leave no locks behind that a killed process held', async () => {
    const id = await (await openFilesystemBlobs(root)).begin();
    await writeFile(join(root, 'locks', id), '');
    await writeFile(join(root, 'locks', 'of an upload that is gone'), '');
    await openFilesystemBlobs(root);
    assert.deepEqual(await readdir(join(root, 'locks')), [id]);
  });

  it('are private, and where the layout says', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(10));
    const id = await blobs.begin();
    assert.equal((await stat(pathOf(digest))).mode & 0o777, 0o600);
    assert.equal((await stat(join(root, 'blobs'))).mode & 0o777, 0o700);
    assert.deepEqual(await readdir(join(root, 'uploads')), [id]);
  });

  it('ignore what others put among them', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(10));
    await writeFile(`${pathOf(digest)}.part`, '');
    await writeFile(join(root, 'blobs', 'sha256', '.DS_Store'), '');
    await writeFile(join(root, 'uploads', 'lost+found'), '');
    assert.equal((await all(blobs.list())).length, 1);
    assert.deepEqual(await all(blobs.uploads()), []);
  });

  it('are no stale uploads when somebody goes on with them', async () => {
    const blobs = await openFilesystemBlobs(root);
    const id = await blobs.begin();
    await utimes(join(root, 'uploads', id), 1_000, 1_000);
    assert.deepEqual(await all(blobs.uploads()), [{ id, size: 0, changed: 1_000_000 }]);
    await blobs.append(id, 0, chunked(bytes(1)));
    assert.ok((await all(blobs.uploads())).every(({ changed }) => changed > 1_700_000_000_000));
  });

  it('are hashed again when the file is not what the hash in memory stands for', async () => {
    const blobs = await openFilesystemBlobs(root);
    const content = bytes(1_000);
    const id = await blobs.begin();
    await blobs.append(id, 0, chunked(content));
    await truncate(join(root, 'uploads', id), 600);
    const mismatch = { reason: 'mismatch', expected: digestOf(content), actual: digestOf(content.subarray(0, 600)) };
    await assert.rejects(blobs.finish(id, digestOf(content)), { name: 'BlobError', failure: mismatch });
  });

  it('fail when they are cut short while somebody reads', async () => {
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

  const uncounted = process.platform !== 'linux' && 'open files are counted in /proc';
  it('leave no file open, whatever becomes of a reader', { skip: uncounted }, async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(2_000_000));
    const open = async (): Promise<number> => (await readdir('/proc/self/fd')).length;
    const before = await open();
    await pull(blobs, digest);
    await (await blobs.open(digest)).close();
    await (await blobs.open(digest)).stream().toArray();
    for await (const _ of (await blobs.open(digest)).stream()) break;
    await assert.rejects((await blobs.open(digest)).copyTo(() => Promise.reject(new Error('gone'))));
    await assert.rejects(blobs.open(digest, { start: 9_000_000, end: 9_000_001 }));
    assert.equal(await open(), before);
  });

  it('say nothing of the operating system when it refuses', async () => {
    const blobs = await openFilesystemBlobs(root);
    const digest = await push(blobs, bytes(10));
    await rm(root, { recursive: true });
    await writeFile(root, 'not a directory');
    for (const refused of [
      () => blobs.begin(),
      () => blobs.stat(digest),
      () => blobs.open(digest),
      () => blobs.remove(digest),
      () => blobs.offset(crypto.randomUUID()),
      () => blobs.finish(crypto.randomUUID(), digest),
      () => all(blobs.list()),
      () => all(blobs.uploads()),
    ]) {
      const failed = { ...failing({ reason: 'failed' }), message: 'the storage of blobs failed' };
      await assert.rejects(refused, failed, String(refused));
    }
  });
});
