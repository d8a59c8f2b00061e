import { createReadStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as sqlite from 'node:sqlite';
import {
  BLOBS,
  type DatabaseSnapshot,
  type MigrationRow,
  type SchemaVersion,
  schemaVersion,
  settingStatement,
} from './snapshot.ts';

export interface SqliteSnapshotOptions {
  /** The database file of the server. */
  readonly path: string;
  /** Where the copy is made. It needs room for the whole database. */
  readonly staging: string;
  readonly clock: () => number;
  readonly masterKeySetting: string;
  onProgress(copied: number, total: number): void;
}

/** Between two of these batches Node reports progress. */
const PAGES_PER_STEP = 1_000;

/**
 * Copies the database by SQLite's online backup. The source connection keeps a read transaction open meanwhile. Without
 * it, the backup starts again whenever another process commits: at 200 commits a second it never ends.
 */
export async function takeSqliteSnapshot(options: SqliteSnapshotOptions): Promise<DatabaseSnapshot> {
  const { path, staging, clock, masterKeySetting, onProgress } = options;
  if (typeof sqlite.backup !== 'function') {
    throw new Error(`Node ${process.versions.node} has no online backup for SQLite: use Node 22.16, 24 or later`);
  }
  await mkdir(staging, { recursive: true, mode: 0o700 });
  const copy = join(staging, 'wharfinger.db');
  const source = new sqlite.DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  let moment: number;
  try {
    moment = clock();
    source.exec('BEGIN');
    // The transaction begins with its first read.
    source.prepare('SELECT count(*) FROM sqlite_schema').get();
    await sqlite.backup(source, copy, {
      rate: PAGES_PER_STEP,
      progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
    });
  } finally {
    source.close();
  }
  const database = new sqlite.DatabaseSync(copy);
  const close = async (): Promise<void> => {
    if (database.isOpen) database.close();
    await rm(copy, { force: true });
  };
  try {
    // Makes the copy one file.
    database.exec('PRAGMA journal_mode = DELETE');
    requireSound(database, path);
    return describeCopy(database, { copy, moment, masterKeySetting, close });
  } catch (error) {
    await close();
    throw error;
  }
}

function describeCopy(
  database: sqlite.DatabaseSync,
  {
    copy,
    moment,
    masterKeySetting,
    close,
  }: Pick<SqliteSnapshotOptions, 'masterKeySetting'> &
    Pick<DatabaseSnapshot, 'moment' | 'close'> & { readonly copy: string },
): DatabaseSnapshot {
  const version = readVersion(database);
  const check = database.prepare(settingStatement('?')).get(masterKeySetting) as { value: string } | undefined;
  return {
    moment,
    version,
    masterKeyCheck: check?.value,
    async *blobs() {
      yield* database.prepare(BLOBS).iterate() as Iterable<{ digest: string; size: number }>;
    },
    async write(writePart) {
      database.close();
      const { size } = await stat(copy);
      const part = 'database.sqlite.zst';
      await writePart(part, () => createReadStream(copy, { highWaterMark: 1024 * 1024 }));
      return { kind: 'sqlite', ...version, part, bytes: size };
    },
    close,
  };
}

function readVersion(database: sqlite.DatabaseSync): SchemaVersion {
  const tables = new Set(
    database
      .prepare('SELECT name FROM sqlite_schema')
      .all()
      .map(({ name }) => name),
  );
  const rowsOf = (table: string): MigrationRow[] =>
    tables.has(table) ? (database.prepare(`SELECT id, name FROM ${table}`).all() as unknown as MigrationRow[]) : [];
  return schemaVersion(rowsOf('migration'), rowsOf('compatible_migration'));
}

/** A backup of a damaged database would replace a good one in the retention. */
function requireSound(database: sqlite.DatabaseSync, path: string): void {
  const { quick_check: result } = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string };
  if (result !== 'ok') throw new Error(`the database ${path} is damaged (${result}): restore an earlier backup`);
}
