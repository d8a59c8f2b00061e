import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Blobs } from './blobs.ts';
import { all, bytes, chunked, digestOf, failing, pull, push } from './content.testing.ts';
import type { TestStorage } from './storage.testing.ts';

const NOT_DIGESTS = [
  '',
  'sha256:',
  `sha256:${'a'.repeat(63)}`,
  `sha256:${'a'.repeat(65)}`,
  `sha256:${'A'.repeat(64)}`,
  `sha256:${'g'.repeat(64)}`,
  `sha256:${'a'.repeat(64)}\n`,
  ` sha256:${'a'.repeat(64)}`,
  `sha512:${'a'.repeat(64)}`,
  `sha256:${'a'.repeat(128)}`,
  `md5:${'a'.repeat(32)}`,
  `sha256/${'a'.repeat(64)}`,
  `sha256:${'../'.repeat(21)}a`,
  `sha256:aa/../${'a'.repeat(58)}`,
  `../sha256:${'a'.repeat(64)}`,
  `sha256:${'a'.repeat(63)}\0`,
  `__proto__:${'a'.repeat(64)}`,
  'a'.repeat(1_000_000),
];

export function blobCases(name: string, create: () => Promise<TestStorage>): void {
  describe(`blobs on ${name}`, () => {
    let storage: TestStorage;
    let blobs: Blobs;
    let now = 1_700_000_000_123;

    beforeEach(async () => {
      storage = await create();
      blobs = await storage.open(() => now);
    });
    afterEach(() => storage.remove());

    it('returns the pushed bytes, from none to several chunks', async () => {
      for (const size of [0, 1, 65_536, 262_143, 262_144, 262_145, 3_000_000]) {
        const content = bytes(size, size);
        const digest = await push(blobs, content);
        assert.deepEqual(await blobs.stat(digest), { size });
        assert.ok(content.equals(await pull(blobs, digest)), `copied, ${size} bytes`);
        const reader = await blobs.open(digest);
        assert.equal(reader.size, size);
        assert.equal(reader.length, size);
        assert.ok(content.equals(Buffer.concat(await reader.stream().toArray())), `streamed, ${size} bytes`);
      }
    });

    it('stores blobs under digests of both algorithms', async () => {
      const content = bytes(100_000);
      for (const algorithm of ['sha256', 'sha512'] as const) {
        const digest = await push(blobs, content, digestOf(content, algorithm));
        assert.ok(content.equals(await pull(blobs, digest)));
      }
    });

    it('keeps blobs after a restart', async () => {
      const content = bytes(1_000);
      const digest = await push(blobs, content);
      assert.ok(content.equals(await pull(await storage.open(), digest)));
    });

    it('reads a range, both ends inclusive', async () => {
      const content = bytes(600_000);
      const digest = await push(blobs, content);
      for (const [start, end] of [
        [0, 0],
        [0, 599_999],
        [1, 262_144],
        [300_000, 300_000],
        [599_999, 599_999],
        [599_990, 1_000_000],
        [17, Infinity],
      ] as const) {
        const expected = content.subarray(start, end + 1);
        const reader = await blobs.open(digest, { start, end });
        assert.equal(reader.size, 600_000);
        assert.equal(reader.length, expected.length);
        assert.ok(expected.equals(Buffer.concat(await reader.stream().toArray())), `streamed ${start}-${end}`);
        assert.ok(expected.equals(await pull(blobs, digest, { start, end })), `copied ${start}-${end}`);
      }
    });

    it('refuses a range outside of the blob, with the size of the blob', async () => {
      const digest = await push(blobs, bytes(10));
      const empty = await push(blobs, bytes(0));
      for (const [start, end] of [
        [10, 20],
        [5, 4],
        [-1, 4],
        [Number.NaN, 4],
      ] as const) {
        await assert.rejects(blobs.open(digest, { start, end }), failing({ reason: 'range', size: 10 }));
      }
      await assert.rejects(blobs.open(empty, { start: 0, end: 0 }), failing({ reason: 'range', size: 0 }));
    });

    it('refuses invalid digests', async () => {
      const id = await blobs.begin();
      const invalid = failing({ reason: 'invalid' });
      for (const text of NOT_DIGESTS) {
        await assert.rejects(blobs.stat(text), invalid, text.slice(0, 100));
        await assert.rejects(blobs.open(text), invalid);
        await assert.rejects(blobs.remove(text), invalid);
        await assert.rejects(all(blobs.list(text)), invalid);
        await assert.rejects(blobs.finish(id, text), invalid);
      }
      assert.equal(await blobs.offset(id), 0, 'the upload can still be finished');
    });

    it('reports a blob that does not exist', async () => {
      const digest = digestOf(bytes(1));
      assert.equal(await blobs.stat(digest), undefined);
      assert.equal(await blobs.remove(digest), false);
      await assert.rejects(blobs.open(digest), failing({ reason: 'unknown', kind: 'blob' }));
    });

    it('lets an open reader read a removed blob', async () => {
      const content = bytes(2_000_000);
      const digest = await push(blobs, content);
      const [copying, streaming, unused] = [
        await blobs.open(digest),
        await blobs.open(digest),
        await blobs.open(digest),
      ];
      const chunks: Buffer[] = [];
      await copying.copyTo(async (chunk) => {
        if (chunks.length === 0) assert.equal(await blobs.remove(digest), true);
        chunks.push(Buffer.from(chunk));
      });
      assert.equal(await blobs.stat(digest), undefined);
      assert.ok(content.equals(Buffer.concat(chunks)));
      assert.ok(content.equals(Buffer.concat(await streaming.stream().toArray())));
      await unused.close();
    });

    it('stops copying when the sink fails, with the error of the sink', async () => {
      const digest = await push(blobs, bytes(2_000_000));
      const reader = await blobs.open(digest);
      const failure = new Error('the client disconnected');
      let calls = 0;
      await assert.rejects(
        reader.copyTo(async () => {
          calls++;
          throw failure;
        }),
        failure,
      );
      assert.equal(calls, 1);
    });

    it('finishes a blob that exists, and updates its time', async () => {
      const content = bytes(1_000);
      const digest = await push(blobs, content);
      now += 5_000;
      await push(blobs, content);
      assert.deepEqual(await all(blobs.list()), [{ digest, size: 1_000, changed: now }]);
      assert.deepEqual(await all(blobs.uploads()), []);
    });

    it('removes a blob only if it was not finished again', async () => {
      const digest = await push(blobs, bytes(1_000));
      assert.equal(await blobs.remove(digest, { before: now }), false);
      assert.deepEqual(await blobs.stat(digest), { size: 1_000 });
      assert.equal(await blobs.remove(digest, { before: now + 1 }), true);
      assert.equal(await blobs.stat(digest), undefined);
    });

    it('keeps a blob that is finished while a conditional remove runs', async () => {
      const content = bytes(1_000);
      const digest = await push(blobs, content);
      now += 1;
      for (let delay = 0; delay < 60; delay++) {
        const id = await blobs.begin();
        await blobs.append(id, 0, chunked(content));
        const finished = blobs.finish(id, digest);
        for (let waited = 0; waited < delay; waited++) await nextTurn();
        await Promise.all([finished, blobs.remove(digest, { before: now })]);
        assert.deepEqual(await blobs.stat(digest), { size: 1_000 }, `delay ${delay}`);
        now += 1;
      }
    });

    it('lists blobs in order, and starts after any digest', async () => {
      const digests: string[] = [];
      for (let seed = 1; seed <= 12; seed++) {
        const content = bytes(seed, seed);
        digests.push(await push(blobs, content, digestOf(content, seed % 3 === 0 ? 'sha512' : 'sha256')));
      }
      digests.sort();
      const listed = async (after?: string) => (await all(blobs.list(after))).map(({ digest }) => digest);
      assert.deepEqual(await listed(), digests);
      for (const [index, digest] of digests.entries()) assert.deepEqual(await listed(digest), digests.slice(index + 1));
      assert.deepEqual(await listed(`sha256:${'f'.repeat(64)}`), digests.slice(8), 'a digest that does not exist');
    });
  });
}
