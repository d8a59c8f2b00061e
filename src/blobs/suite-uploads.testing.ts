import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Blobs } from './blobs.ts';
import { all, bytes, chunked, digestOf, failing, pull, push } from './content.testing.ts';
import type { TestStorage } from './storage.testing.ts';

const UNKNOWN_IDS = ['', '.', '..', '../blobs', 'a/b', '%2e%2e', 'x\0', crypto.randomUUID(), 'a'.repeat(100_000)];
const unknown = failing({ reason: 'unknown', kind: 'upload' });

export function uploadCases(name: string, create: () => Promise<TestStorage>): void {
  describe(`uploads on ${name}`, () => {
    let storage: TestStorage;
    let blobs: Blobs;

    beforeEach(async () => {
      storage = await create();
      blobs = await storage.open();
    });
    afterEach(() => storage.remove());

    const nothingStored = async (): Promise<void> => {
      assert.deepEqual(await all(blobs.list()), []);
      assert.deepEqual(await all(blobs.uploads()), []);
    };

    it('accepts several appends, and returns the offset of the next one', async () => {
      const content = bytes(200_000);
      const id = await blobs.begin();
      assert.equal(await blobs.offset(id), 0);
      assert.equal(await blobs.append(id, 0, chunked(content.subarray(0, 70_000))), 70_000);
      assert.equal(await blobs.append(id, 70_000, chunked(Buffer.alloc(0))), 70_000);
      assert.equal(await blobs.offset(id), 70_000);
      assert.equal(await blobs.append(id, 70_000, Readable.from(chunked(content.subarray(70_000)))), 200_000);
      assert.equal(await blobs.stat(digestOf(content)), undefined, 'not before it is finished');
      assert.deepEqual(await blobs.finish(id, digestOf(content)), { size: 200_000 });
      assert.ok(content.equals(await pull(blobs, digestOf(content))));
      assert.equal(await blobs.offset(id), undefined);
    });

    it('accepts chunks of any size', async () => {
      const content = bytes(3_000_000);
      for (const sizes of [[1, 0, 2, 300, 65_536, 1_048_577], [3_000_000], [997]]) {
        const id = await blobs.begin();
        await blobs.append(id, 0, chunked(content, sizes));
        await blobs.finish(id, digestOf(content));
        assert.ok(content.equals(await pull(blobs, digestOf(content))), `chunks of ${sizes}`);
        await blobs.remove(digestOf(content));
      }
    });

    it('calls `done` for each chunk when its memory can be reused', async () => {
      const content = bytes(300_000);
      const chunks = await all(chunked(Buffer.from(content), [100_000]));
      const id = await blobs.begin();
      const overwrite = (chunk: Uint8Array): void => void chunk.fill(0);
      await blobs.append(id, 0, Readable.from(chunks), { done: overwrite });
      assert.ok(chunks.every((chunk) => chunk.every((byte) => byte === 0)));
      await blobs.finish(id, digestOf(content));
      assert.ok(content.equals(await pull(blobs, digestOf(content))));
    });

    it('deletes an upload that does not match its digest', async () => {
      for (const algorithm of ['sha256', 'sha512'] as const) {
        const [claimed, given] = [bytes(1_000), bytes(999)];
        const [expected, actual] = [digestOf(claimed, algorithm), digestOf(given, algorithm)];
        const id = await blobs.begin();
        await blobs.append(id, 0, chunked(given));
        await assert.rejects(blobs.finish(id, expected), failing({ reason: 'mismatch', expected, actual }));
        assert.equal(await blobs.offset(id), undefined);
        await nothingStored();
      }
    });

    it('refuses an append at another offset, with the right offset', async () => {
      const content = bytes(1_000);
      const id = await blobs.begin();
      await blobs.append(id, 0, chunked(content.subarray(0, 400)));
      for (const offset of [0, 399, 401, 1_000, -1, Number.NaN, Infinity]) {
        await assert.rejects(blobs.append(id, offset, chunked(content)), failing({ reason: 'offset', offset: 400 }));
      }
      await blobs.append(id, 400, chunked(content.subarray(400)));
      await blobs.finish(id, digestOf(content));
    });

    it('keeps the bytes of a source that failed later', async () => {
      const content = bytes(500_000);
      const id = await blobs.begin();
      const reset = new Error('read ECONNRESET');
      const broken = blobs.append(id, 0, chunked(content.subarray(0, 150_000), [60_000], reset));
      await assert.rejects(broken, { ...failing({ reason: 'interrupted', offset: 150_000 }), cause: reset });
      assert.equal(await blobs.offset(id), 150_000);
      await blobs.append(id, 150_000, chunked(content.subarray(150_000)));
      await blobs.finish(id, digestOf(content));
    });

    it('treats a destroyed stream as a failed source', async () => {
      const id = await blobs.begin();
      const request = new PassThrough();
      request.write(bytes(1_000));
      const appending = blobs.append(id, 0, request);
      request.once('drain', () => request.destroy());
      request.write(bytes(100_000));
      await assert.rejects(appending, { name: 'BlobError', reason: 'interrupted' });
      assert.equal(await blobs.cancel(id), true);
    });

    it('refuses more bytes than the limit, and does not destroy the stream', async () => {
      const id = await blobs.begin();
      await blobs.append(id, 0, chunked(bytes(100)), { limit: 100 });
      const request = Readable.from([bytes(50), bytes(51), bytes(52)]);
      await assert.rejects(blobs.append(id, 100, request, { limit: 200 }), failing({ reason: 'large', limit: 200 }));
      assert.equal(request.destroyed, false);
      assert.equal((await request.toArray()).length, 1, 'the rest of the stream can be read');
      assert.equal(await blobs.offset(id), 150);
    });

    it('allows one request at a time to write to an upload', async () => {
      const content = bytes(1_000);
      const id = await blobs.begin();
      const request = new PassThrough();
      const appending = blobs.append(id, 0, request);
      const busy = failing({ reason: 'busy' });
      await assert.rejects(blobs.append(id, 0, chunked(content)), busy);
      await assert.rejects(blobs.finish(id, digestOf(content)), busy);
      await assert.rejects(blobs.cancel(id), busy);
      request.end(content);
      assert.equal(await appending, 1_000);
      await blobs.finish(id, digestOf(content));
    });

    it('accepts concurrent uploads of the same content', async () => {
      const content = bytes(300_000);
      const digests = await Promise.all(Array.from({ length: 5 }, () => push(blobs, content)));
      assert.deepEqual(new Set(digests), new Set([digestOf(content)]));
      assert.ok(content.equals(await pull(blobs, digestOf(content))));
      assert.deepEqual(await all(blobs.uploads()), []);
    });

    it('cancels uploads', async () => {
      const id = await blobs.begin();
      await blobs.append(id, 0, chunked(bytes(1_000)));
      assert.equal(await blobs.cancel(id), true);
      assert.equal(await blobs.cancel(id), false);
      await assert.rejects(blobs.append(id, 1_000, chunked(bytes(1))), unknown);
      await nothingStored();
    });

    it('reports uploads that do not exist', async () => {
      for (const id of UNKNOWN_IDS) {
        assert.equal(await blobs.offset(id), undefined);
        assert.equal(await blobs.cancel(id), false);
        await assert.rejects(blobs.append(id, 0, chunked(bytes(1))), unknown);
        await assert.rejects(blobs.finish(id, digestOf(bytes(1))), unknown);
      }
    });

    it('lists uploads with their size and the time of their last change', async () => {
      const [left, used] = [await blobs.begin(), await blobs.begin()];
      await blobs.append(used, 0, chunked(bytes(10)));
      const listed = await all(blobs.uploads());
      assert.deepEqual(
        new Map(listed.map(({ id, size }) => [id, size])),
        new Map([
          [left, 0],
          [used, 10],
        ]),
      );
      for (const { changed } of listed) assert.ok(Math.abs(changed - Date.now()) < 60_000, String(changed));
    });

    it('continues an upload after a restart', async () => {
      const content = bytes(900_000);
      const id = await blobs.begin();
      await blobs.append(id, 0, chunked(content.subarray(0, 400_000)));
      const restarted = await storage.open();
      assert.equal(await restarted.offset(id), 400_000);
      await restarted.append(id, 400_000, chunked(content.subarray(400_000)));
      await (await storage.open()).finish(id, digestOf(content));
      assert.ok(content.equals(await pull(restarted, digestOf(content))));
    });

    it('uses a few megabytes of memory for an upload of any size', async () => {
      const chunk = bytes(65_536);
      const before = process.memoryUsage().arrayBuffers;
      let most = 0;
      const source = async function* () {
        for (let sent = 0; sent < 192 * 1024 * 1024; sent += chunk.length) {
          most = Math.max(most, process.memoryUsage().arrayBuffers - before);
          yield new Uint8Array(chunk);
        }
      };
      await blobs.append(await blobs.begin(), 0, source());
      // Includes memory that is not garbage collected yet. A buffer of the whole upload would take 192 MiB.
      assert.ok(most < 96 * 1024 * 1024, `${most >> 20} MiB`);
    });
  });
}
