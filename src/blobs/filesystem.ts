import { type Clock, systemClock } from '../base/clock.ts';
import { createBlobFiles } from './blob-files.ts';
import type { Blobs } from './blobs.ts';
import { asBlobError } from './errors.ts';
import { createLayout } from './layout.ts';
import { createUploadLocks } from './upload-locks.ts';
import { createUploads } from './uploads.ts';

export interface FilesystemOptions {
  readonly clock?: Clock;
  /** How many uploads keep their hash in memory between two requests, at a few hundred bytes each. */
  readonly cachedHashes?: number;
}

/** Stores blobs as files below `root`, which must be one file system. Several processes of one machine may use it. */
export async function openFilesystemBlobs(
  root: string,
  { clock = systemClock, cachedHashes = 1_000 }: FilesystemOptions = {},
): Promise<Blobs> {
  const layout = await createLayout(root);
  const files = createBlobFiles(layout);
  const locks = await createUploadLocks(layout);
  const uploads = createUploads({ layout, clock, cachedHashes, locks, publish: files.publish });
  return {
    stat: withBlobErrors(files.stat),
    open: withBlobErrors(files.open),
    list: (after) => iterateWithBlobErrors(files.list(after)),
    remove: withBlobErrors(files.remove),
    quarantine: withBlobErrors(files.quarantine),
    begin: withBlobErrors(uploads.begin),
    append: withBlobErrors(uploads.append),
    offset: withBlobErrors(uploads.offset),
    finish: withBlobErrors(uploads.finish),
    cancel: withBlobErrors(uploads.cancel),
    uploads: () => iterateWithBlobErrors(uploads.uploads()),
  };
}

function withBlobErrors<A extends unknown[], R>(method: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      throw asBlobError(error);
    }
  };
}

async function* iterateWithBlobErrors<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    throw asBlobError(error);
  }
}
