import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createIdFile, readIdFile } from '../base/id-file.ts';
import type { Log } from '../base/log.ts';
import { blobPath } from '../blobs/layout.ts';
import { countLinkedDigests, scanLinkedDigests } from '../domains/registry/manifests/blob-links.ts';
import type { Reader } from '../store/store.ts';

// The directory with the blobs contains the id of its database. A volume that is not mounted has no such file, so blobs
// are never written to an empty mount point.

/** The directory of the blobs within a data directory. */
export const registryDirectory = (dataDir: string): string => join(dataDir, 'registry');

const idFileIn = (directory: string): string => join(directory, 'database-id');

export interface RegistryDirectoryOptions {
  readonly db: Reader;
  readonly directory: string;
  readonly databaseId: string;
  /** Whether this database was used with the data directory before. */
  readonly isKnown: boolean;
  readonly log: Pick<Log, 'warn'>;
}

/**
 * Refuses a directory that has the blobs of another database, or lacks the blobs of this one. A new data directory may
 * lack them: several servers can share a PostgreSQL database, and each has its own files.
 */
export async function requireRegistryDirectory(options: RegistryDirectoryOptions): Promise<void> {
  const { db, directory, databaseId, isKnown, log } = options;
  await requireOwnRegistry(directory, databaseId);
  const problem = await findRegistryProblem(db, directory);
  if (problem !== undefined && isKnown) {
    const repair = "to start without them, run 'wharf registry init', then push the images again";
    throw new Error(`${problem}: mount its volume, or restore it from a backup; ${repair}`);
  }
  if (problem !== undefined) log.warn({ directory }, problem);
  await claimRegistryDirectory(directory, databaseId);
}

/** Says that the directory was not used with this database and has none of its blobs. Undefined if that is not so. */
export async function findRegistryProblem(db: Reader, directory: string): Promise<string | undefined> {
  if ((await readIdFile(idFileIn(directory))) !== undefined || (await hasLinkedBlob(db, directory))) return undefined;
  const missing = await countLinkedDigests(db);
  return missing === 0 ? undefined : `the database has ${missing} blobs, but ${directory} has none of them`;
}

/** Refuses a directory that has the blobs of another database. */
export async function requireOwnRegistry(directory: string, databaseId: string): Promise<void> {
  const owner = await readIdFile(idFileIn(directory));
  if (owner === undefined || owner === databaseId) return;
  throw new Error(
    `${directory} has the blobs of another database (that of organization ${owner}, not ${databaseId}): ` +
      'mount the right volume, or check WHARF_DATA and WHARF_DATABASE_URL',
  );
}

/** Records which database the blobs belong to. */
export async function claimRegistryDirectory(directory: string, databaseId: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await createIdFile(idFileIn(directory), databaseId);
}

/** How many blobs are looked for. Directories of earlier versions have no id file. */
const SAMPLE = 100;

async function hasLinkedBlob(db: Reader, directory: string): Promise<boolean> {
  const digests = await scanLinkedDigests(db, '', SAMPLE);
  return digests.some((digest) => existsSync(blobPath(directory, digest)));
}
