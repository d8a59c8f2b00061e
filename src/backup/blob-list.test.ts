import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { blobKey, formatBlobList, type ListedBlob, matchBlobs, mergeBlobLists, parseBlobList } from './blob-list.ts';

const digest = (value: number): string => `sha256:${createHash('sha256').update(String(value)).digest('hex')}`;
const byDigest = (a: ListedBlob, b: ListedBlob): number => (a.digest < b.digest ? -1 : 1);
/** Sorted lists of blobs. A blob has the same size in all lists. */
const lists = fc
  .array(fc.integer({ min: 0, max: 40 }), { maxLength: 30 })
  .map((values) => [...new Set(values)].map((value) => ({ digest: digest(value), size: value })).sort(byDigest));

async function* stream<T>(items: readonly T[]) {
  yield* items;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

describe('list of blobs', () => {
  it('is read as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(lists, async (blobs) => {
        assert.deepEqual(await collect(parseBlobList(formatBlobList(stream(blobs)))), blobs);
      }),
    );
  });

  it('is refused if a line is damaged or out of order', async () => {
    const line = `${digest(1)} 1`;
    for (const text of [`${line}x\n`, 'sha256:00 1\n', `${line}\n${line}\n`, '\n', `../../etc/passwd 1\n`]) {
      await assert.rejects(collect(parseBlobList(stream([Buffer.from(text)]))), /the list of blobs is damaged/, text);
    }
  });

  it('is merged with others without repetition', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(lists, { maxLength: 5 }), async (all) => {
        const expected = [...new Map(all.flat().map((blob) => [blob.digest, blob])).values()].sort(byDigest);
        assert.deepEqual(await collect(mergeBlobLists(all.map(stream))), expected);
      }),
    );
  });

  it('is matched with the files of a target', async () => {
    await fc.assert(
      fc.asyncProperty(lists, lists, async (listed, stored) => {
        const unlisted: string[] = [];
        const files = stored.map((blob) => ({ key: blobKey(blob.digest), size: blob.size }));
        const matched = await collect(matchBlobs(stream(listed), stream(files), (key) => void unlisted.push(key)));
        const sizes = new Map(stored.map((blob) => [blob.digest, blob.size]));
        assert.deepEqual(
          matched,
          listed.map((blob) => ({ ...blob, stored: sizes.get(blob.digest) })),
        );
        const known = new Set(listed.map((blob) => blobKey(blob.digest)));
        assert.deepEqual(
          unlisted,
          files.map(({ key }) => key).filter((key) => !known.has(key)),
        );
      }),
    );
  });

  it('is not matched with a target that lists in the wrong order', async () => {
    const files = [blobKey(digest(1)), blobKey(digest(2))].sort().reverse();
    const stored = stream(files.map((key) => ({ key, size: 1 })));
    await assert.rejects(collect(matchBlobs(stream([]), stored)), /wrong order/);
  });
});
