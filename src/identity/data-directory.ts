import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createIdFile, readIdFile } from '../base/id-file.ts';
import { firstOrganization } from '../domains/iam/groups/first-organization.ts';
import { databaseFile, restoreDirectory } from '../store/open.ts';
import { getSetting, putSettingIfAbsent } from '../store/settings.ts';
import type { Reader, Store } from '../store/store.ts';

// A data directory and its database belong together. The id of the database is in both, so that a lost database or a
// wrong WHARF_DATABASE_URL is noticed: a start would otherwise create a new organization in an empty database.

/** The setting with the id of the database: the uid of its first organization, which older backups have too. */
const DATABASE_ID = 'database.id';

const idFileIn = (dataDir: string): string => join(dataDir, 'database-id');

/** Whether a start has used this directory before. A first start that was interrupted does not count. */
function wasUsed(dataDir: string): boolean {
  const has = (name: string): boolean => existsSync(join(dataDir, name));
  return has('database-id') || (has('owner.json') && has('master.key')) || hasBlobs(join(dataDir, 'registry/blobs'));
}

const hasBlobs = (directory: string): boolean =>
  ['sha256', 'sha512']
    .map((algorithm) => join(directory, algorithm))
    .some((shards) => existsSync(shards) && readdirSync(shards).length > 0);

/** Refuses a data directory whose SQLite database is missing. Call it before the database is opened, which creates it. */
export function requireDatabaseFile(dataDir: string): void {
  const file = databaseFile(dataDir);
  if (existsSync(file) || !wasUsed(dataDir)) return;
  // Opening the database reports a restore that has not finished.
  if (existsSync(restoreDirectory(dataDir))) return;
  throw new Error(
    `the database ${file} is missing, although the data directory was used before: restore it from a backup, or ` +
      `set WHARF_DATABASE_URL if the database is in PostgreSQL; ${beginAgain}`,
  );
}

const beginAgain = 'to begin with an empty database, use an empty data directory';

/** Refuses a database that is empty or belongs to another data directory. Call it before anything is written. */
export async function requireOwnDatabase(db: Reader, dataDir: string): Promise<void> {
  const expected = await readIdFile(idFileIn(dataDir));
  const actual = await readDatabaseId(db);
  if (actual === undefined) {
    if (!wasUsed(dataDir)) return;
    throw new Error(
      `the database is empty, although the data directory ${dataDir} was used before: check WHARF_DATABASE_URL, or ` +
        `restore the database from a backup; ${beginAgain}`,
    );
  }
  if (expected === undefined || expected === actual) return;
  throw new Error(
    `the data directory ${dataDir} belongs to another database (that of organization ${expected}, not ${actual}): ` +
      'check WHARF_DATA and WHARF_DATABASE_URL',
  );
}

/** The id of the database. Undefined before its first start. */
export async function readDatabaseId(db: Reader): Promise<string | undefined> {
  return (await getSetting(db, DATABASE_ID)) ?? (await firstOrganization(db));
}

/** What a start knows about its data directory. */
export interface DataDirectory {
  readonly databaseId: string;
  /** Whether this database was used with this directory before. */
  readonly isKnown: boolean;
}

/** Records in the data directory which database it belongs to. Call it after the first organization exists. */
export async function claimDataDirectory(store: Store, dataDir: string, organization: string): Promise<DataDirectory> {
  const isKnown = wasUsed(dataDir);
  const databaseId =
    (await getSetting(store.reader, DATABASE_ID)) ??
    (await store.write((tx) => putSettingIfAbsent(tx, DATABASE_ID, organization)));
  await createIdFile(idFileIn(dataDir), databaseId);
  return { databaseId, isKnown };
}
