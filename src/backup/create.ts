import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { keyIdOf } from '../base/secretbox.ts';
import { version } from '../base/version.ts';
import type { Blobs } from '../blobs/blobs.ts';
import { deleteHolds, findHolds, HOLD_MS, holdBlobs, releaseBlobs } from '../domains/registry/storage/blob-holds.ts';
import { CHECK, keyOf, readKeys } from '../identity/master-key.ts';
import { keyFileIn } from '../identity/master-key-file.ts';
import { databaseFile } from '../store/open.ts';
import { putSetting } from '../store/settings.ts';
import type { Store } from '../store/store.ts';
import { formatBlobList, readBlobList } from './blob-list.ts';
import { copyBlobs } from './copy-blobs.ts';
import { requireFree } from './free-space.ts';
import { LAST_BACKUP, type LastBackup } from './last-backup.ts';
import { FORMAT, formatManifest, type Manifest, manifestKey, type Part, partKey, prepareTarget } from './manifest.ts';
import { takePostgresSnapshot } from './postgres-snapshot.ts';
import type { Progress } from './progress.ts';
import { awaitOthers, beginRun, type OwnRun, removeInterrupted } from './runs.ts';
import type { DatabaseSnapshot, WritePart } from './snapshot.ts';
import { takeSqliteSnapshot } from './sqlite-snapshot.ts';
import { compress, measured } from './streams.ts';
import { type BackupTarget, writeText } from './target.ts';

export interface CreateOptions {
  readonly target: BackupTarget;
  /** From `newRunId`. It becomes the id of the backup. */
  readonly id: string;
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
  /** The database, opened without migrating it. */
  readonly store: Store;
  readonly blobs: Pick<Blobs, 'open'>;
  readonly masterKey: Uint8Array | undefined;
  readonly withMasterKey: boolean;
  /** Copies all blobs, also those that the target has. */
  readonly full: boolean;
  readonly clock: () => number;
  readonly progress: Progress;
}

/** The parts of a run that all steps use. */
interface Work extends CreateOptions {
  readonly run: OwnRun;
  readonly staging: string;
  readonly parts: Part[];
  readonly writePart: WritePart;
}

const HOLD_RENEW_MS = HOLD_MS / 10;
const STAGING = 'backup-staging';
const BLOB_LIST = 'blobs.zst';

/**
 * Creates a backup while servers are running.
 * 1. Announces itself to other runs, and keeps garbage collection from deleting blobs.
 * 2. Takes a snapshot of the database. The moment of the backup is just before it.
 * 3. Copies the snapshot, and then the blobs that it refers to and that the target does not have. A blob exists before
 *    the database refers to it, so all of them exist.
 * 4. Writes the manifest. Without it there is no backup.
 */
export async function createBackup(options: CreateOptions): Promise<Manifest> {
  const { target, id, dataDir, store, clock, progress } = options;
  await prepareTarget(target);
  const run = await beginRun(target, id, 'create', clock);
  const staging = target.stagingDirectory(id) ?? join(dataDir, STAGING, id);
  try {
    await awaitOthers(run, 'prune', ({ host }) => progress.say(`waiting for 'wharf backup prune' on ${host} to end`));
    const removed = await removeInterrupted(target, run);
    for (const interrupted of removed) progress.say(`removed the incomplete backup ${interrupted}`);
    await holdBlobs(store, id, clock() + HOLD_MS);
    const renewal = setInterval(() => void holdBlobs(store, id, clock() + HOLD_MS).catch(() => {}), HOLD_RENEW_MS);
    try {
      await removeOldStaging(dataDir, new Set(await findHolds(store.reader, clock())));
      await mkdir(staging, { recursive: true, mode: 0o700 });
      const parts: Part[] = [];
      return await createHeld({ ...options, run, staging, parts, writePart: partWriter(target, id, parts) });
    } finally {
      clearInterval(renewal);
      await releaseBlobs(store, id).catch(() => {});
    }
  } finally {
    await rm(staging, { recursive: true, force: true });
    await run.end();
  }
}

async function createHeld(work: Work): Promise<Manifest> {
  const { target, id, run, staging, store, clock, progress, parts, writePart } = work;
  const begun = clock();
  const blobList = join(staging, 'blobs');
  const snapshot = await takeSnapshot(work);
  let database: Manifest['database'];
  try {
    await writeLocally(blobList, formatBlobList(snapshot.blobs()));
    progress.say('copying the database');
    database = await snapshot.write(writePart);
  } finally {
    await snapshot.close();
  }
  await writePart(BLOB_LIST, () => createReadStream(blobList));
  const files = await writeFiles(work);
  const masterKey = await writeMasterKey(work, snapshot.masterKeyCheck);
  const blobs = await copyBlobs({ ...work, list: () => readBlobList(blobList) });
  const finished = clock();
  const manifest: Manifest = {
    format: FORMAT,
    id,
    version,
    moment: new Date(snapshot.moment).toISOString(),
    finished: new Date(finished).toISOString(),
    database,
    files: masterKey.included ? [...files, 'master.key'] : files,
    masterKey,
    blobs: { part: BLOB_LIST, ...blobs },
    parts,
  };
  await run.requireLive();
  await writeText(target, manifestKey(id), formatManifest(manifest));
  await recordSuccess(store, {
    ...{ id, moment: snapshot.moment, finished, durationMs: finished - begun },
    bytes: parts.reduce((sum, { size }) => sum + size, blobs.bytes),
    copiedBytes: parts.reduce((sum, { size }) => sum + size, blobs.copiedBytes),
  });
  return manifest;
}

async function takeSnapshot(work: Work): Promise<DatabaseSnapshot> {
  const { target, databaseUrl, dataDir, staging, clock, progress } = work;
  if (databaseUrl) return takePostgresSnapshot(databaseUrl, { clock, masterKeySetting: CHECK });
  const path = databaseFile(dataDir);
  // The copy, and its compressed form beside it.
  await requireFree(target, 1.5 * statSync(path).size, 'the database');
  return takeSqliteSnapshot({
    ...{ path, staging, clock, masterKeySetting: CHECK },
    onProgress: (copied, total) => progress.update('database pages', copied, total),
  });
}

function partWriter(target: BackupTarget, id: string, parts: Part[]): WritePart {
  return async (name, open) => {
    await target.write(partKey(id, name), {
      open: () =>
        measured(name.endsWith('.zst') ? compress(open()) : open(), (meter) => parts.push({ name, ...meter })),
    });
  };
}

/** Copies the files of the data directory that cannot be created again. */
async function writeFiles({ dataDir, writePart }: Work): Promise<string[]> {
  const files: string[] = [];
  for (const name of ['owner.json']) {
    const content = await readFile(join(dataDir, name)).catch((error: NodeJS.ErrnoException) => {
      // Only the server that created the database has the file.
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (content === undefined) continue;
    await writePart(name, () => Readable.from([content]));
    files.push(name);
  }
  return files;
}

async function writeMasterKey(work: Work, check: string | undefined): Promise<Manifest['masterKey']> {
  const { dataDir, masterKey, withMasterKey, writePart } = work;
  const id = check === undefined ? undefined : keyIdOf(check);
  const place = masterKey ? 'the value of WHARF_MASTER_KEY' : keyFileIn(dataDir);
  if (!withMasterKey) {
    const note = `not included: keep ${place} in another place; a restored server does not start without it`;
    return { included: false, id, note };
  }
  const keys = await readKeys({ dataDir, configured: masterKey });
  if (check !== undefined && !keyOf(keys, check)) {
    throw new Error(`${place} is not the master key of this database: run the command as the server runs`);
  }
  const lines = keys.map(({ bytes }) => `${Buffer.from(bytes).toString('base64')}\n`);
  await writePart('master.key', () => Readable.from([Buffer.from(lines.join(''))]));
  return { included: true, id, note: 'included: this backup gives access to all secrets in it' };
}

/** Shows the last backup in the metrics of all servers. */
async function recordSuccess(store: Store, last: LastBackup): Promise<void> {
  await store.write(async (tx) => {
    await putSetting(tx, LAST_BACKUP, JSON.stringify(last));
    await deleteHolds(tx, last.finished);
  });
}

const writeLocally = (path: string, source: AsyncIterable<Uint8Array>): Promise<void> =>
  pipeline(Readable.from(source), createWriteStream(path, { mode: 0o600 }));

/**
 * Runs to S3 stage the database in the data directory. Those that were killed left it there. `live` are the runs to any
 * target that have a hold, which they take first.
 */
async function removeOldStaging(dataDir: string, live: ReadonlySet<string>): Promise<void> {
  const names = await readdir(join(dataDir, STAGING)).catch(() => []);
  for (const name of names) {
    if (!live.has(name)) await rm(join(dataDir, STAGING, name), { recursive: true, force: true });
  }
}
