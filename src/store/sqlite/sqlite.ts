import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { closed } from '../errors.ts';
import { createRowCache, type WritableRowCache } from '../row-cache.ts';
import type { Row, Store, Value } from '../store.ts';
import { type Connection, connect, isBusy } from './connection.ts';
import { createGroupCommit } from './group-commit.ts';

export interface SqliteOptions {
  /** How long a write waits for another process that holds the write lock. */
  readonly lockWaitMs?: number;
}

/** Applied to each connection. Not here: mmap, because a bad sector under a mapped page kills the process by SIGBUS. */
const SETTINGS = [
  'PRAGMA cache_size = -65536', // 64 MiB, which holds the upper levels of the index of some million rows
  'PRAGMA temp_store = DEFAULT', // a statement journal in memory is walked from its start for every statement: large transactions took quadratic time
];

const WRITER_SETTINGS = [
  'PRAGMA journal_mode = WAL', // readers and the writer never wait for each other
  'PRAGMA synchronous = FULL', // a commit is on disk before it is acknowledged; WAL alone would only promise integrity
  'PRAGMA wal_autocheckpoint = 4000', // 16 MiB: hot pages are copied back to the file once, not once per 4 MiB
  'PRAGMA journal_size_limit = 67108864', // gives the disk space back after a burst
];

export interface SqliteStore extends Store {
  /** The same store with a memory for rows of these tables, each with the column of its key. Once, when they exist. */
  withRowCache(keyColumns: Readonly<Record<string, string>>): Store;
}

export async function openSqlite(path: string, { lockWaitMs = 5_000 }: SqliteOptions = {}): Promise<SqliteStore> {
  createPrivately(path);
  // Waiting for a lock inside SQLite would stop the whole process, so the writer asks again later instead.
  const writer = await untilUnlocked(() => connectWriter(path), lockWaitMs);
  const reader = connectReader(path);
  const begin = () => untilUnlocked(() => void writer.run('BEGIN IMMEDIATE'), lockWaitMs);
  const commits = createGroupCommit(writer, begin, forgetChanged);
  const changed = new Set<string>();
  let memory: WritableRowCache | undefined;
  let closing: Promise<void> | undefined;

  function forgetChanged(): void {
    if (changed.size === 0) return;
    memory?.invalidate(changed);
    changed.clear();
  }

  const open = (): Connection => {
    if (closing !== undefined) throw closed();
    return reader;
  };
  const shutDown = async (): Promise<void> => {
    await commits.idle();
    reader.close();
    writer.close(); // the last to leave, which may write, moves the log into the file and removes it
  };

  const store: Store = {
    // Each statement here is a transaction of its own: it sees all that was acknowledged and nothing uncommitted.
    reader: {
      all: <R extends Row>(sql: string, ...params: Value[]) => open().all<R>(sql, ...params),
      get: <R extends Row>(sql: string, ...params: Value[]) => open().get<R>(sql, ...params),
      binaryCollation: reader.binaryCollation,
      jsonElements: 'json_each',
    },
    write: (work) => (closing === undefined ? commits.write(work) : Promise.reject(closed())),
    ping: async () => void open().get('SELECT count(*) FROM sqlite_schema'),
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
  return {
    ...store,
    withRowCache(keyColumns) {
      for (const [table, column] of Object.entries(keyColumns))
        writer.onChange(table, column, (key) => changed.add(key));
      memory = createRowCache(() => othersVersion(writer));
      return { ...store, reader: { ...store.reader, rowCache: memory } };
    },
  };
}

/** Differs after commits by any other connection, and not after our own: https://sqlite.org/pragma.html#pragma_data_version */
function othersVersion(writer: Connection): number | undefined {
  try {
    return writer.get<{ data_version: number }>('PRAGMA data_version')?.data_version;
  } catch {
    // Whatever is wrong, the statements that are asked for in its place will say it.
    return undefined;
  }
}

/** SQLite gives the files beside the database the mode that the database has. */
function createPrivately(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
}

function configured(connection: Connection, settings: readonly string[]): Connection {
  try {
    for (const setting of settings) connection.get(setting);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

const connectWriter = (path: string): Connection =>
  configured(connect(path, { readOnly: false, blockMs: 0 }), [...SETTINGS, ...WRITER_SETTINGS]);

/** A reader meets a lock only while another process recovers the file after a crash, which is short. */
const connectReader = (path: string): Connection =>
  configured(connect(path, { readOnly: true, blockMs: 1_000 }), SETTINGS);

/** SQLite has no queue for its lock, so those of several processes who wait must look often to find it free. */
const RETRY_MS = 1;

async function untilUnlocked<T>(step: () => T, waitMs: number): Promise<T> {
  const giveUpAt = performance.now() + waitMs;
  for (;;) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= giveUpAt) throw error;
      await sleep(RETRY_MS);
    }
  }
}
