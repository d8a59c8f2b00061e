import { resolve } from 'node:path';
import { createS3Client } from '../s3/client.ts';
import { readCredentials } from '../s3/credentials.ts';
import { parseS3Location } from '../s3/location.ts';
import { openDirectoryTarget } from './directory-target.ts';
import { createS3Target } from './s3-target.ts';

/** A file of a backup target. */
export interface TargetEntry {
  readonly key: string;
  readonly size: number;
}

/** What is written to a target. `open` may be called again after a failure. */
export interface Content {
  open(): AsyncIterable<Uint8Array>;
  /** Undefined if it is not known before. */
  readonly size?: number | undefined;
  /** In hex. */
  readonly sha256?: string | undefined;
}

/**
 * Where backups are stored: a directory or a part of an S3 bucket. Keys are paths with slashes:
 * - `wharf-backups.json` says that this is a target for backups
 * - `backups/<id>/manifest.json`, written last, and the parts of this backup beside it
 * - `blobs/sha256/ab/<hex>`: the blobs that all backups share
 * - `in-progress/<id>.json`: who is changing the target now
 */
export interface BackupTarget {
  /** For messages. Contains no secrets. */
  readonly name: string;
  /** Where a run can put temporary files that are as large as the database. Undefined if the target has no such place. */
  stagingDirectory(runId: string): string | undefined;
  /** Undefined if there is no limit that could be known. */
  freeBytes(): Promise<number | undefined>;
  /** Returns undefined if there is no such file. */
  readText(key: string): Promise<string | undefined>;
  /** Throws a MissingFileError if there is no such file. */
  read(key: string): AsyncIterable<Uint8Array>;
  /** Lists the files below a prefix, which ends with a slash, in bytewise order of their keys. */
  list(prefix: string): AsyncIterable<TargetEntry>;
  /** Writes a file durably. It appears with all of its content, or not at all. Replaces a file that exists. */
  write(key: string, content: Content): Promise<void>;
  /** Returns false if the file exists already. */
  writeIfAbsent(key: string, text: string): Promise<boolean>;
  /** Succeeds also if there is no such file. */
  remove(key: string): Promise<void>;
  /** Removes temporary files of runs that were interrupted, which are all but the given ones. */
  removeLeftovers(liveRuns: ReadonlySet<string>): Promise<void>;
  /** Whether there is anything in it. */
  isEmpty(): Promise<boolean>;
  close(): void;
}

export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';

  constructor(key: string) {
    super(`${key} is missing`);
  }
}

export const writeText = (target: BackupTarget, key: string, text: string): Promise<void> => {
  const bytes = Buffer.from(text);
  async function* open() {
    yield bytes;
  }
  return target.write(key, { open, size: bytes.length });
};

export interface TargetOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Names the temporary files. */
  readonly runId: string;
}

/** Opens a directory, or `s3://bucket/prefix?region=…&endpoint=…`. Throws an error that says what to write. */
export function openTarget(location: string, { env, runId }: TargetOptions): BackupTarget {
  if (location === '') throw new Error('the backup target is empty: write a directory or s3://bucket/prefix');
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(location)) {
    if (!location.startsWith('s3://')) {
      throw new Error(`${location.split('://')[0]}:// is not supported: write a directory or s3://bucket/prefix`);
    }
    const s3 = parseS3Location(location, env);
    return createS3Target(createS3Client({ location: s3, credentials: readCredentials(env) }), s3);
  }
  return openDirectoryTarget(resolve(location), runId);
}
