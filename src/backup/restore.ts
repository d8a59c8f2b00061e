import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { syncDirectory } from '../base/sync-directory.ts';
import { version } from '../base/version.ts';
import type { Blobs } from '../blobs/blobs.ts';
import { openFilesystemBlobs } from '../blobs/filesystem.ts';
import { migrations } from '../store/migrations.ts';
import { databaseFile, restoreDirectory } from '../store/open.ts';
import { blobKey, type ListedBlob, matchBlobs } from './blob-list.ts';
import { findPart, type Manifest } from './manifest.ts';
import type { Progress } from './progress.ts';
import { restorePostgres } from './restore-postgres.ts';
import { RestoreRefused } from './restore-refused.ts';
import { cleanSqlite } from './restored-state.ts';
import { decompress, forEachConcurrently } from './streams.ts';
import type { BackupTarget } from './target.ts';
import { DamagedPartError, readPart, readSpooledList, spoolList } from './verify.ts';

export interface RestoreOptions {
  readonly target: BackupTarget;
  readonly manifest: Manifest;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  /** The directory of the blobs in the data directory. */
  readonly registryDirectory: string;
  readonly progress: Progress;
}

/** Written first, so that a restore that was interrupted can be continued. */
interface RestoreState {
  readonly backup: string;
  /** Marks the PostgreSQL database that this restore has loaded. */
  readonly token: string;
  /** The backup cannot be restored, so another one may be. Until then, no server starts. */
  readonly isDamaged?: boolean;
}

const STATE = 'restore.json';
/** The files that are restored so far. */
const FILES = 'data';
const CONCURRENT = 4;
/** A new file system has lost+found. A server that refused to start has left its lock. */
const IGNORED = new Set(['lost+found', 'server.lock']);

/**
 * Restores a backup into an empty data directory and, if the backup has a PostgreSQL database, an empty one of that
 * kind. Everything is verified on the way.
 *
 * The files are first written to a directory in the data directory, with which no server starts. When all are there they
 * are moved into place, the database last. PostgreSQL is loaded in one transaction. So a restore that was interrupted is
 * never taken for a whole one, and the next one continues it.
 */
export async function restoreBackup(options: RestoreOptions): Promise<void> {
  const { manifest, dataDir, databaseUrl, progress } = options;
  requireMatchingDatabase(manifest, databaseUrl);
  requireKnownSchema(manifest);
  const directory = restoreDirectory(dataDir);
  const state = await beginRestore(dataDir, directory, manifest.id);
  const files = join(directory, FILES);
  // Has this name when everything is in it, so that only the move is left to do.
  const complete = join(directory, 'complete');
  if (!existsSync(complete)) {
    try {
      await mkdir(files, { recursive: true, mode: 0o700 });
      for (const name of manifest.files) await restorePart(options, name, join(files, name));
      await restoreBlobs(options, join(files, basename(options.registryDirectory)), directory);
      if (databaseUrl) await restorePostgres({ ...options, databaseUrl, token: state.token });
      else await restoreSqlite(options, databaseFile(files));
    } catch (error) {
      if (error instanceof DamagedPartError) await markDamaged(directory, state);
      throw error;
    }
    await rename(files, complete);
  }
  progress.say('moving the files into place');
  await moveIntoPlace(complete, dataDir);
  await rm(directory, { recursive: true });
  await syncDirectory(dataDir);
}

function requireMatchingDatabase({ id, database }: Manifest, databaseUrl: string | undefined): void {
  if (database.kind === 'postgresql' && !databaseUrl) {
    throw new RestoreRefused(`the backup ${id} has a PostgreSQL database: give an empty one with WHARF_DATABASE_URL`);
  }
  if (database.kind === 'sqlite' && databaseUrl) {
    const copy = "then copy it with 'wharf db copy'";
    throw new RestoreRefused(`the backup ${id} has an SQLite database: restore it without WHARF_DATABASE_URL, ${copy}`);
  }
}

/** An SQLite file is restored as it is. The tables of PostgreSQL are created by the migrations of this version. */
function requireKnownSchema({ id, database, version: creator }: Manifest): void {
  const newest = migrations.at(-1)?.id ?? 0;
  const needed = database.kind === 'sqlite' ? database.requires : database.schema;
  if (needed <= newest) return;
  throw new RestoreRefused(
    `the backup ${id} was created by Wharfinger ${creator} with schema ${database.schema}; ` +
      `this is version ${version}, which supports ${newest}: use ${creator} or newer`,
  );
}

/** Refuses a data directory that is not empty, unless an interrupted restore of the same backup left it so. */
async function beginRestore(dataDir: string, directory: string, backup: string): Promise<RestoreState> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const statePath = join(directory, STATE);
  const text = await readFile(statePath, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text !== undefined) {
    const state = JSON.parse(text) as RestoreState;
    if (state.backup === backup) return state;
    if (state.isDamaged) return writeState(directory, { backup, token: randomUUID() });
    throw new RestoreRefused(
      `the backup ${state.backup} was not completely restored into ${dataDir}: ` +
        `continue with --backup ${state.backup}, or delete the content of ${dataDir} first`,
    );
  }
  const others = (await readdir(dataDir)).filter((name) => !IGNORED.has(name) && name !== basename(directory));
  if (others.length > 0) {
    throw new RestoreRefused(
      `${dataDir} is not empty (it has ${others.slice(0, 3).join(', ')}): a restore replaces nothing, ` +
        'so give an empty directory with --data, or move the files away',
    );
  }
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return writeState(directory, { backup, token: randomUUID() });
}

async function writeState(directory: string, state: RestoreState): Promise<RestoreState> {
  const path = join(directory, STATE);
  await writeFile(`${path}.new`, JSON.stringify(state), { mode: 0o600, flush: true });
  await rename(`${path}.new`, path);
  return state;
}

/** Removes what was restored of a damaged backup. The directory remains, so that no server starts without data. */
async function markDamaged(directory: string, state: RestoreState): Promise<void> {
  await rm(join(directory, FILES), { recursive: true, force: true });
  await writeState(directory, { ...state, isDamaged: true });
}

/** Writes a part to a file, which is whole and synced when it has this name. */
async function restorePart(
  { target, manifest }: RestoreOptions,
  name: string,
  path: string,
  decode: typeof decompress = (source) => source,
): Promise<void> {
  const source = decode(readPart(target, manifest.id, findPart(manifest, name)));
  await pipeline(
    Readable.from(source, { objectMode: false }),
    createWriteStream(`${path}.new`, { mode: 0o600, flush: true }),
  );
  await rename(`${path}.new`, path);
}

async function restoreSqlite(options: RestoreOptions, path: string): Promise<void> {
  const { database } = options.manifest;
  if (database.kind !== 'sqlite') throw new Error('the backup has no SQLite database');
  options.progress.say('restoring the database');
  await restorePart(options, database.part, path, decompress);
  cleanSqlite(path);
}

/** Restores the blobs that an interrupted restore has not restored yet. */
async function restoreBlobs(options: RestoreOptions, registry: string, directory: string): Promise<void> {
  const { target, manifest, progress } = options;
  const list = await spoolList(target, manifest, directory);
  const blobs = await openFilesystemBlobs(registry);
  const unavailable = new Set(manifest.blobs.unavailable.map(({ digest }) => digest));
  let restored = 0;
  const onBytes = (count: number): void => {
    restored += count;
    progress.update('bytes of blobs', restored, manifest.blobs.bytes);
  };
  const existing = async function* () {
    for await (const { digest, size } of blobs.list()) yield { key: blobKey(digest), size };
  };
  await forEachConcurrently(matchBlobs(readSpooledList(list), existing()), CONCURRENT, async (blob) => {
    if (blob.stored === blob.size) return onBytes(blob.size);
    await restoreBlob(target, blobs, blob, onBytes).catch((error: Error) => {
      if (!unavailable.has(blob.digest))
        throw new Error(`the blob ${blob.digest} of the backup cannot be restored: ${error.message}`, { cause: error });
      progress.say(`the blob ${blob.digest} is not in the backup: push its image again`);
    });
  });
  await rm(list);
}

/** An upload to the storage: it verifies the digest, and the blob appears when it is whole. */
async function restoreBlob(
  target: BackupTarget,
  blobs: Blobs,
  { digest }: ListedBlob,
  onBytes: (count: number) => void,
): Promise<void> {
  const upload = await blobs.begin();
  try {
    await blobs.append(upload, 0, target.read(blobKey(digest)), { done: ({ length }) => onBytes(length) });
    await blobs.finish(upload, digest);
  } catch (error) {
    await blobs.cancel(upload).catch(() => {});
    throw error;
  }
}

/** The database is last: without it a server would not find anything, and with it everything is there. */
async function moveIntoPlace(files: string, dataDir: string): Promise<void> {
  const last = basename(databaseFile(dataDir));
  const names = (await readdir(files)).sort((a, b) => Number(a === last) - Number(b === last));
  for (const name of names) await rename(join(files, name), join(dataDir, name));
}
