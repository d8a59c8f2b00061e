import type { Log } from '../../base/log.ts';
import { createLru } from '../../base/lru.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { BlobReader, Blobs, ByteRange } from '../../blobs/blobs.ts';
import { BlobError } from '../../blobs/errors.ts';
import { RegistryError } from '../../domains/registry/errors.ts';

export interface StoredBlobsOptions {
  readonly blobs: Pick<Blobs, 'open' | 'stat'>;
  readonly log: Pick<Log, 'error'>;
  readonly metrics: Pick<Metrics, 'countDamagedBlob'>;
}

/**
 * The files of blobs that a repo has. A file that is missing or has the wrong size counts as missing: clients then upload
 * the blob again, which replaces the file. It is logged and counted.
 */
export interface StoredBlobs {
  /** Whether a blob of this size can be read. */
  isStored(digest: string, size: number): Promise<boolean>;
  /** Opens a blob of this size. Throws BLOB_UNKNOWN if it cannot be read. */
  open(digest: string, size: number, range?: ByteRange): Promise<BlobReader>;
}

/** Clients retry, so each blob is logged once. This many are remembered. */
const MAX_LOGGED = 1_000;

export function createStoredBlobs({ blobs, log, metrics }: StoredBlobsOptions): StoredBlobs {
  const logged = createLru<string, true>(MAX_LOGGED);

  function report(digest: string, size: number, actualSize: number | undefined): void {
    const problem = actualSize === undefined ? 'missing' : 'size';
    metrics.countDamagedBlob(problem);
    if (logged.get(digest)) return;
    logged.set(digest, true);
    const what = actualSize === undefined ? 'is missing' : `has ${actualSize} bytes instead of ${size}`;
    log.error(
      { digest, size, actualSize },
      `the file of a blob ${what}: push the image again or restore the file; 'wharf registry verify' lists such blobs`,
    );
  }

  return {
    async isStored(digest, size) {
      const found = await blobs.stat(digest);
      if (found?.size === size) {
        // A later problem with the same blob is logged again.
        logged.delete(digest);
        return true;
      }
      report(digest, size, found?.size);
      return false;
    },

    async open(digest, size, range) {
      let reader: BlobReader;
      try {
        reader = await blobs.open(digest, range);
      } catch (error) {
        const { failure } = error instanceof BlobError ? error : {};
        // The range was checked against the size, so the file has another one.
        const actualSize = failure?.reason === 'range' ? failure.size : undefined;
        if (failure?.reason !== 'unknown' && failure?.reason !== 'range') throw error;
        report(digest, size, actualSize);
        throw lost(digest);
      }
      if (reader.size === size) return reader;
      await reader.close();
      report(digest, size, reader.size);
      throw lost(digest);
    },
  };
}

const lost = (digest: string): RegistryError =>
  new RegistryError('BLOB_UNKNOWN', `the server has lost the content of ${digest}; push the image again`);
