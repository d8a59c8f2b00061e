import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { databaseClosed } from '../errors.ts';
import type { Reader, Row, Store, Value } from '../store.ts';
import { createStatementPreparer, rethrow } from './connection.ts';
import { createReads } from './reads.ts';
import { BINARY_COLLATION, runSnapshot } from './transaction.ts';
import { valueTypes } from './types.ts';
import { createWriteGrouper } from './write-grouper.ts';

export interface PostgresOptions {
  /** The most connections that this server opens. */
  readonly connections?: number;
  /** A statement that runs longer fails. 0 for no limit. */
  readonly statementTimeoutMs?: number;
  readonly applicationName?: string;
  /** Called for connections that broke while they were idle. */
  readonly onLostConnection?: (error: Error) => void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const CLIENT_TIMEOUT_MARGIN_MS = 2_000;
/** How often `close` checks whether all reads have returned. */
const CLOSE_POLL_MS = 5;

export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Store> {
  const pool = createPool(url, options);
  const preparer = createStatementPreparer();
  const reads = createReads((query) => pool.query(query).catch(rethrow), preparer);
  const write = createWriteGrouper(pool, preparer);
  const runningWrites = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  function requireOpen(): void {
    if (closing !== undefined) throw databaseClosed();
  }

  async function shutDown(): Promise<void> {
    await Promise.allSettled(runningWrites);
    // Reads may wait for the next turn of the event loop, or for another batch.
    while (!reads.isIdle()) await sleep(CLOSE_POLL_MS);
    await pool.end();
  }

  const reader: Reader = {
    all<R extends Row>(sql: string, ...params: Value[]) {
      requireOpen();
      return reads.all(sql, params) as Promise<R[]>;
    },
    get<R extends Row>(sql: string, ...params: Value[]) {
      requireOpen();
      return reads.get(sql, params) as Promise<R | undefined>;
    },
    binaryCollation: BINARY_COLLATION,
  };
  const store: Store = {
    reader,
    async write(work, options) {
      requireOpen();
      const running = write(work, options).finally(() => runningWrites.delete(running));
      runningWrites.add(running);
      return running;
    },
    async snapshot(work) {
      requireOpen();
      const running = runSnapshot(pool, preparer, work).finally(() => runningWrites.delete(running));
      runningWrites.add(running);
      return running;
    },
    ping: async () => void (await reader.get('SELECT 1')),
    size: async () =>
      (await reader.get<{ size: number }>('SELECT pg_database_size(current_database()) AS size'))?.size ?? 0,
    connections: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    close() {
      closing ??= shutDown();
      return closing;
    },
  };
  try {
    await requireUtf8(reader);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function createPool(url: string, options: PostgresOptions) {
  const { connections = 10, statementTimeoutMs = 30_000, applicationName = 'wharfinger', onLostConnection } = options;
  const pool = new pg.Pool({
    connectionString: url,
    application_name: applicationName,
    max: connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // The timeout of the client, for a database that does not respond. It must not expire before that of the database.
    query_timeout: statementTimeoutMs && statementTimeoutMs + CLIENT_TIMEOUT_MARGIN_MS,
    keepAlive: true,
    // Sends a statement without waiting for the result of the one before.
    pipeline: true,
    types: valueTypes,
  });
  pool.on('error', (error) => onLostConnection?.(error));
  // A connection that breaks between two statements of a transaction also emits an event. The next statement fails
  // anyway.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** A name can be any text. With another encoding, the database would refuse some of them. */
async function requireUtf8(reader: Reader): Promise<void> {
  const row = await reader.get<{ server_encoding: string }>('SHOW server_encoding');
  if (row?.server_encoding !== 'UTF8') {
    throw new Error(
      `the database has the encoding ${row?.server_encoding}, not UTF8: create it with the encoding UTF8`,
    );
  }
}
