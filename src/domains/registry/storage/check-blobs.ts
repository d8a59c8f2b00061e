import type { Blobs } from '../../../blobs/blobs.ts';
import type { Report } from '../../../resource/check/difference.ts';
import { pagesOf } from '../../../resource/check/find-tuples.ts';
import type { Reader, Row } from '../../../store/store.ts';

const LINKED = `SELECT digest, min(repo) AS repo, max(size) AS size FROM blob_link
  WHERE digest > $1 GROUP BY digest ORDER BY digest LIMIT 500`;
const STILL_LINKED = 'SELECT repo FROM blob_link WHERE digest = $1 LIMIT 1';

interface LinkedRow extends Row {
  readonly digest: string;
  readonly repo: string;
  readonly size: number;
}

export interface BlobCheckOptions {
  readonly report: Report;
  /** Returns what is wrong with the content of a blob, or undefined; it reads all of it. Absent to check sizes only. */
  readonly verifyContent: ((digest: string) => Promise<string | undefined>) | undefined;
  readonly onProgress: (blobs: number) => void;
}

/** Checks that the storage has all blobs that repos link. `current` is the database as it is now. */
export async function checkBlobs(
  snapshot: Reader,
  current: Reader,
  blobs: Pick<Blobs, 'stat'>,
  { report, verifyContent, onProgress }: BlobCheckOptions,
): Promise<void> {
  for await (const rows of pagesOf<LinkedRow>(snapshot, LINKED, [''], ({ digest }) => [digest])) {
    for (const { digest, repo, size } of rows) {
      const found = await blobs.stat(digest);
      const isSameSize = found?.size === Number(size);
      const problem = isSameSize ? await verifyContent?.(digest) : sizeProblem(found, Number(size));
      onProgress(1);
      if (problem === undefined) continue;
      // Garbage collection may have deleted it since the snapshot.
      if ((await current.get(STILL_LINKED, digest)) === undefined) continue;
      report({
        kind: 'blob',
        uid: digest,
        problem: found ? 'damaged blob' : 'missing blob',
        description: `${problem}; repo ${repo} uses it`,
        isRepairable: false,
        isRepaired: false,
        advice: 'push the image again, or restore the blob from a backup; wharf registry verify lists the images',
      });
    }
  }
}

const sizeProblem = (found: { readonly size: number } | undefined, size: number): string =>
  found ? `the file has ${found.size} bytes instead of ${size}` : 'the file does not exist';
