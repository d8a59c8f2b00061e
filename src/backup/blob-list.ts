import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { toDigest } from '../blobs/digest.ts';

/** A blob that a backup contains. */
export interface ListedBlob {
  readonly digest: string;
  readonly size: number;
}

/** The key of a blob in a target. Keys sort as digests do. */
export function blobKey(digest: string): string {
  const parsed = toDigest(digest);
  if (!parsed) throw new Error(`${JSON.stringify(digest)} is not a digest`);
  return `blobs/${parsed.algorithm}/${parsed.hex.slice(0, 2)}/${parsed.hex}`;
}

/** Formats a list: one line per blob, in the order of the digests. */
export async function* formatBlobList(blobs: AsyncIterable<ListedBlob>): AsyncGenerator<Uint8Array> {
  let lines = '';
  for await (const { digest, size } of blobs) {
    lines += `${digest} ${size}\n`;
    if (lines.length < 64 * 1024) continue;
    yield Buffer.from(lines);
    lines = '';
  }
  if (lines !== '') yield Buffer.from(lines);
}

/** Parses the text of a list. Throws if a line is not valid, or if the digests are not in order. */
export async function* parseBlobList(text: AsyncIterable<Uint8Array>): AsyncGenerator<ListedBlob> {
  let last = '';
  for await (const line of createInterface({ input: Readable.from(text), crlfDelay: Number.POSITIVE_INFINITY })) {
    const [digest = '', size = ''] = line.split(' ');
    if (toDigest(digest) === undefined || !/^[0-9]{1,15}$/.test(size) || digest <= last) {
      throw new Error(`the list of blobs is damaged at ${JSON.stringify(line.slice(0, 100))}`);
    }
    last = digest;
    yield { digest, size: Number(size) };
  }
}

/** Reads a list that is not compressed from a local file. */
export const readBlobList = (path: string): AsyncGenerator<ListedBlob> => parseBlobList(createReadStream(path));

/** Merges sorted lists. Yields each digest once. */
export async function* mergeBlobLists(lists: readonly AsyncIterable<ListedBlob>[]): AsyncGenerator<ListedBlob> {
  const iterators = lists.map((list) => list[Symbol.asyncIterator]());
  const heads: (ListedBlob | undefined)[] = [];
  for (const iterator of iterators) heads.push(await nextOf(iterator));
  for (;;) {
    const first = heads.reduce(
      (least, head) => (head && (!least || head.digest < least.digest) ? head : least),
      undefined,
    );
    if (!first) return;
    for (const [at, head] of heads.entries()) {
      if (head?.digest === first.digest) heads[at] = await nextOf(iterators[at] as AsyncIterator<ListedBlob>);
    }
    yield first;
  }
}

async function nextOf<T>(iterator: AsyncIterator<T>): Promise<T | undefined> {
  const { done, value } = await iterator.next();
  return done ? undefined : value;
}

/** A blob of a list and what a target has of it. */
export interface MatchedBlob extends ListedBlob {
  /** Undefined if the target does not have the blob. */
  readonly stored: number | undefined;
}

/**
 * Compares a list with the blobs of a target in one pass over both, which are sorted. Yields the blobs of the list, and
 * calls `onUnlisted` for the others.
 */
export async function* matchBlobs(
  list: AsyncIterable<ListedBlob>,
  stored: AsyncIterable<{ readonly key: string; readonly size: number }>,
  onUnlisted: (key: string, size: number) => Promise<void> | void = () => {},
): AsyncGenerator<MatchedBlob> {
  const iterator = stored[Symbol.asyncIterator]();
  let head = await nextOf(iterator);
  const advance = async (): Promise<void> => {
    const { key } = head as { key: string };
    head = await nextOf(iterator);
    if (head && head.key <= key)
      throw new Error(`the target lists its files in the wrong order: ${head.key} after ${key}`);
  };
  for await (const blob of list) {
    const key = blobKey(blob.digest);
    while (head && head.key < key) {
      await onUnlisted(head.key, head.size);
      await advance();
    }
    const isStored = head?.key === key;
    yield { ...blob, stored: isStored ? head?.size : undefined };
    if (isStored) await advance();
  }
  while (head) {
    await onUnlisted(head.key, head.size);
    await advance();
  }
}
