import { closeSync, mkdirSync, openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseClosed } from '../errors.ts';
import { createRowCache, type WritableRowCache } from '../row-cache.ts';
import type { Store } from '../store.ts';
import type { Row, Value } from '../value.ts';
import { type Connection, connect, isBusy } from './connection.ts';
import { createGroupCommit } from './group-commit.ts';

export interface SqliteOptions {
  /** How long a write waits for the write lock of another process. */
  readonly lockWaitMs?: number;
}

/** Applied to each connection. Not mmap, because a bad sector under a mapped page kills the process by SIGBUS. */
const SETTINGS = [
  'PRAGMA cache_size = -65536', // 64 MiB, enough for the upper levels of the index of some million rows
  // A statement journal in memory is walked from its start for every statement: large transactions took quadratic time.
  'PRAGMA temp_store = DEFAULT',
];

const WRITER_SETTINGS = [
  'PRAGMA journal_mode = WAL', // readers and the writer never wait for each other
  'PRAGMA synchronous = FULL', // a commit is on disk before it returns; WAL alone would only guarantee integrity
  'PRAGMA wal_autocheckpoint = 4000', // 16 MiB: hot pages are copied back to the file once, not once per 4 MiB
  'PRAGMA journal_size_limit = 67108864', // truncates the WAL file after a burst
];

export interface SqliteStore extends Store {
  /**
   * Returns the same store with a cache for the rows of these tables, each given with its key column. May be called
   * once, after the tables were created.
   */
  withRowCache(keyColumns: Readonly<Record<string, string>>): Store;
}

export async function openSqlite(path: string, { lockWaitMs = 5_000 }: SqliteOptions = {}): Promise<SqliteStore> {
  createPrivateFile(path);
  // SQLite would block the whole process while it waits for a lock, so the writer polls instead.
  const writer = await retryWhileLocked(() => connectWriter(path), lockWaitMs);
  const reader = connectReader(path);
  const begin = () => retryWhileLocked(() => void writer.run('BEGIN IMMEDIATE'), lockWaitMs);
  const commits = createGroupCommit(writer, begin, invalidateChangedRows);
  const changedKeys = new Set<string>();
  let rowCache: WritableRowCache | undefined;
  let closing: Promise<void> | undefined;

  function invalidateChangedRows(): void {
    if (changedKeys.size === 0) return;
    rowCache?.invalidate(changedKeys);
    changedKeys.clear();
  }

  const openReader = (): Connection => {
    if (closing !== undefined) throw databaseClosed();
    return reader;
  };
  const shutDown = async (): Promise<void> => {
    await commits.idle();
    reader.close();
    writer.close(); // last, because it can write: SQLite then copies the WAL into the database and deletes it
  };

  const store: Store = {
    // Each statement is a transaction of its own: it sees everything that was committed before, and nothing
    // uncommitted.
    reader: {
      all: <R extends Row>(sql: string, ...params: Value[]) => openReader().all<R>(sql, ...params),
      get: <R extends Row>(sql: string, ...params: Value[]) => openReader().get<R>(sql, ...params),
      binaryCollation: reader.binaryCollation,
      jsonElements: 'json_each',
    },
    write: (work) => (closing === undefined ? commits.write(work) : Promise.reject(databaseClosed())),
    async snapshot(work) {
      if (closing !== undefined) throw databaseClosed();
      const connection = connectReader(path);
      try {
        connection.run('BEGIN');
        // The first read takes the snapshot.
        connection.get('SELECT count(*) FROM sqlite_schema');
        return await work(connection);
      } finally {
        connection.close();
      }
    },
    ping: async () => void openReader().get('SELECT count(*) FROM sqlite_schema'),
    size: async () => (await sizeOf(path)) + (await sizeOf(`${path}-wal`)),
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
  return {
    ...store,
    withRowCache(keyColumns) {
      for (const [table, column] of Object.entries(keyColumns))
        writer.onChange(table, column, (key) => changedKeys.add(key));
      rowCache = createRowCache(() => dataVersion(writer));
      return { ...store, reader: { ...store.reader, rowCache } };
    },
  };
}

/**
 * Changes with commits of other connections, and not with those of `writer`:
 * https://sqlite.org/pragma.html#pragma_data_version
 */
function dataVersion(writer: Connection): number | undefined {
  try {
    return writer.get<{ data_version: number }>('PRAGMA data_version')?.data_version;
  } catch {
    // The cache is emptied then, and the statements that run instead report what is wrong.
    return undefined;
  }
}

/** 0 for a file that does not exist: there is no WAL before the first write. */
const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** Creates the database file with a private mode, which SQLite also gives to the files beside it. */
function createPrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
}

function configure(connection: Connection, settings: readonly string[]): Connection {
  try {
    for (const setting of settings) connection.get(setting);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

const connectWriter = (path: string): Connection =>
  configure(connect(path, { readOnly: false, blockMs: 0 }), [...SETTINGS, ...WRITER_SETTINGS]);

/** A reader waits for a lock only while another process recovers the database after a crash, which is short. */
export const connectReader = (path: string): Connection =>
  configure(connect(path, { readOnly: true, blockMs: 1_000 }), SETTINGS);

/** SQLite has no queue for its lock: the process that polls most often gets it. */
const LOCK_POLL_MS = 1;

async function retryWhileLocked<T>(step: () => T, waitMs: number): Promise<T> {
  const giveUpAt = performance.now() + waitMs;
  for (;;) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= giveUpAt) throw error;
      await sleep(LOCK_POLL_MS);
    }
  }
}
