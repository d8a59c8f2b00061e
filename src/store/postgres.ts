import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { closed, refuseNul, unavailable } from './errors.ts';
import { isBroken, isConflict, translate } from './postgres-errors.ts';
import { valueTypes } from './postgres-types.ts';
import { openSession } from './session.ts';
import type { Maybe, Reader, Row, Store, Transaction, Value } from './store.ts';

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
const MAX_TRIES = 5;
const MAX_PREPARED = 500;
const BYTEWISE = ' COLLATE "C"';
const LOCK = { share: ' FOR SHARE', update: ' FOR UPDATE', free: ' FOR UPDATE SKIP LOCKED' };

export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Store> {
  const pool = createPool(url, options);
  const prepare = createPrepare();
  const underWay = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  /** Everything but closing goes through here, so that closing can wait for it. */
  async function serve<T>(call: () => Promise<T>): Promise<T> {
    if (closing !== undefined) throw closed();
    const promise = call();
    underWay.add(promise);
    try {
      return await promise;
    } finally {
      underWay.delete(promise);
    }
  }

  async function write<T>(work: (tx: Transaction) => Maybe<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await transact(pool, prepare, work);
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES) throw error;
        // Jitter, or those that met once would meet again.
        await sleep(Math.random() * 10 * 2 ** tries);
      }
    }
  }

  async function shutDown(): Promise<void> {
    await Promise.allSettled(underWay);
    await pool.end();
  }

  const read = async <R extends Row>(sql: string, params: Value[]): Promise<R[]> =>
    (await pool.query<R>(prepare(sql, params)).catch(rethrow)).rows;
  const reader: Reader = {
    all: <R extends Row>(sql: string, ...params: Value[]) => serve(() => read<R>(sql, params)),
    get: <R extends Row>(sql: string, ...params: Value[]) => serve(async () => (await read<R>(sql, params))[0]),
    bytewise: BYTEWISE,
  };
  const store: Store = {
    reader,
    write: (work) => serve(() => write(work)),
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

type Prepare = (sql: string, params: Value[]) => pg.QueryConfig<Value[]>;

/** A statement with a name is parsed and planned once per connection. */
function createPrepare(): Prepare {
  const names = new Map<string, string>();
  return (text, values) => {
    refuseNul(values);
    let name = names.get(text);
    // Beyond the limit a text is planned for each use: the database keeps what has a name for as long as the connection.
    if (name === undefined && names.size >= MAX_PREPARED) return { text, values };
    if (name === undefined) {
      name = `w${names.size}`;
      names.set(text, name);
    }
    return { name, text, values };
  };
}

async function transact<T>(pool: pg.Pool, prepare: Prepare, work: (tx: Transaction) => Maybe<T>): Promise<T> {
  const client = await pool.connect().catch(rethrow);
  let broken = false;
  const ask = <R extends Row>(query: string | pg.QueryConfig<Value[]>): Promise<pg.QueryResult<R>> =>
    client.query<R>(query).catch((error: unknown) => {
      broken ||= isBroken(error);
      return rethrow(error);
    });
  const session = openSession({
    // Prepared at once: what is refused here, without the database, must be known before anything else is sent.
    all: <R extends Row>(sql: string, ...params: Value[]) => ask<R>(prepare(sql, params)).then(({ rows }) => rows),
    get: <R extends Row>(sql: string, ...params: Value[]): Promise<R | undefined> =>
      ask<R>(prepare(sql, params)).then(({ rows }) => rows[0]),
    run: (sql, ...params) => ask(prepare(sql, params)).then(({ rowCount }) => rowCount ?? 0),
    bytewise: BYTEWISE,
    lock: LOCK,
  });
  try {
    // Not awaited: the first statement travels with it, and fails if it does.
    ask('BEGIN ISOLATION LEVEL READ COMMITTED').catch(() => {});
    const value = await work(session.tx);
    if (session.failure() !== undefined) throw session.failure();
    session.end();
    await ask('COMMIT').catch((error: unknown) => {
      throw broken
        ? unavailable('the database was lost during the commit; the change may have been made', error)
        : error;
    });
    // Of a posted statement that failed, the commit made a rollback.
    if (session.failure() !== undefined) throw session.failure();
    return value;
  } catch (error) {
    session.end();
    // A broken connection needs no rollback: the database does that when it notices.
    if (!broken) await ask('ROLLBACK').catch(() => {});
    throw isConflict(session.failure()) ? session.failure() : error;
  } finally {
    client.release(broken);
  }
}

function rethrow(error: unknown): never {
  throw translate(error);
}

/** Any text can be a name; an older encoding would refuse some of them, one request at a time. */
async function requireUtf8(reader: Reader): Promise<void> {
  const row = await reader.get<{ server_encoding: string }>('SHOW server_encoding');
  if (row?.server_encoding !== 'UTF8')
    throw new Error(`the database has the encoding ${row?.server_encoding}, not UTF8`);
}
