import { type Clock, systemClock } from '../base/clock.ts';
import { createStored } from './blob-files.ts';
import type { Blobs } from './blobs.ts';
import { asBlobError } from './errors.ts';
import { createLayout } from './layout.ts';
import { createUploadLocks } from './upload-locks.ts';
import { createUploads } from './uploads.ts';

export interface FilesystemOptions {
  readonly clock?: Clock;
  /** How many uploads keep their hash in memory between two requests, at a few hundred bytes each. */
  readonly liveHashes?: number;
}

/** Blobs as files below `root`, all on one file system and written by processes of one machine. */
export async function openFilesystemBlobs(
  root: string,
  { clock = systemClock, liveHashes = 1_000 }: FilesystemOptions = {},
): Promise<Blobs> {
  const layout = await createLayout(root);
  const stored = createStored(layout);
  const locked = await createUploadLocks(layout);
  const uploads = createUploads({ layout, clock, liveHashes, locked, place: stored.place });
  return {
    stat: translated(stored.stat),
    open: translated(stored.open),
    list: (after) => translatedList(stored.list(after)),
    remove: translated(stored.remove),
    begin: translated(uploads.begin),
    append: translated(uploads.append),
    offset: translated(uploads.offset),
    finish: translated(uploads.finish),
    cancel: translated(uploads.cancel),
    uploads: () => translatedList(uploads.uploads()),
  };
}

function translated<A extends unknown[], R>(method: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (error) {
      throw asBlobError(error);
    }
  };
}

async function* translatedList<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    throw asBlobError(error);
  }
}
