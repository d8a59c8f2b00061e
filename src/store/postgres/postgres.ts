import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { closed } from '../errors.ts';
import type { Reader, Row, Store, Value } from '../store.ts';
import { createStatementPreparer, rethrow } from './connection.ts';
import { createReads } from './reads.ts';
import { BINARY_COLLATION } from './transaction.ts';
import { valueTypes } from './types.ts';
import { createWrites } from './writes.ts';

export interface PostgresOptions {
  /** Each server holds at most so many connections. */
  readonly connections?: number;
  /** A statement that runs longer fails; 0 waits for ever. */
  readonly statementTimeoutMs?: number;
  /** Told about connections that broke while nobody used them. */
  readonly onLostConnection?: (error: Error) => void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const WATCH_MARGIN_MS = 2_000;
/** How often a closing store looks whether all reads are answered. */
const CLOSE_LOOK_MS = 5;

export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Store> {
  const pool = createPool(url, options);
  const preparing = createStatementPreparer();
  const reads = createReads((query) => pool.query(query).catch(rethrow), preparing);
  const write = createWrites(pool, preparing);
  /** Writes, for which closing waits. */
  const underWay = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  function requireOpen(): void {
    if (closing !== undefined) throw closed();
  }

  async function shutDown(): Promise<void> {
    await Promise.allSettled(underWay);
    // Reads may wait for the next turn, or for each other.
    while (!reads.isIdle()) await sleep(CLOSE_LOOK_MS);
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
    async write(work, how) {
      requireOpen();
      const writing = write(work, how).finally(() => underWay.delete(writing));
      underWay.add(writing);
      return writing;
    },
    ping: async () => void (await reader.get('SELECT 1')),
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

function createPool(url: string, { connections = 10, statementTimeoutMs = 30_000, onLostConnection }: PostgresOptions) {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'wharfinger',
    max: connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    // Our own watch, for a database that went silent: it must not fire before the database's.
    query_timeout: statementTimeoutMs && statementTimeoutMs + WATCH_MARGIN_MS,
    keepAlive: true,
    // Statements that are not awaited one by one travel together.
    pipeline: true,
    types: valueTypes,
  });
  pool.on('error', (error) => onLostConnection?.(error));
  // A connection in use that breaks between two statements also emits an event, and the next statement fails anyway.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** Any text can be a name; an older encoding would refuse some of them, one request at a time. */
async function requireUtf8(reader: Reader): Promise<void> {
  const row = await reader.get<{ server_encoding: string }>('SHOW server_encoding');
  if (row?.server_encoding !== 'UTF8')
    throw new Error(`the database has the encoding ${row?.server_encoding}, not UTF8`);
}
