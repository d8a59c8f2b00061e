import type pg from 'pg';
import { awaitAll } from '../await-all.ts';
import { type BulkInsert, columnCount } from '../bulk-insert.ts';
import { refuseNul } from '../errors.ts';
import type { Row, Value } from '../value.ts';
import { insertText, toColumnArrays } from './bulk-insert.ts';
import { isBroken, translateError } from './errors.ts';

const MAX_PREPARED = 500;

export type Query = pg.QueryConfig<Value[]>;

/** Makes queries of statements. All transactions of a store share it. */
export interface StatementPreparer {
  prepare(sql: string, params: readonly Value[]): Query;
  /** Returns the queries that insert these rows, in the order in which to send them. */
  prepareInsert(insert: BulkInsert, values: readonly Value[]): Query[];
}

/** Gives each text a name: PostgreSQL parses and plans a named statement once per connection. */
export function createStatementPreparer(): StatementPreparer {
  const names = new Map<string, string>();
  const toQuery = (text: string, values: Value[]): Query => {
    let name = names.get(text);
    // Texts beyond the limit get no name: PostgreSQL keeps a named statement for as long as the connection lives.
    if (name === undefined && names.size >= MAX_PREPARED) return { text, values };
    if (name === undefined) {
      name = `w${names.size}`;
      names.set(text, name);
    }
    return { name, text, values };
  };
  return {
    prepare(text, values) {
      refuseNul(values);
      return toQuery(text, [...values]);
    },
    prepareInsert(insert, values) {
      refuseNul(values);
      return [...toColumnArrays(values, columnCount(insert))].map((columns) => toQuery(insertText(insert), columns));
    },
  };
}

/** A connection that was taken from the pool for one transaction. */
export interface Connection {
  query<R extends Row>(query: string | Query): Promise<pg.QueryResult<R>>;
  insert<R extends Row>(queries: readonly Query[]): Promise<R[]>;
  /** The error of the first statement that failed. */
  failure(): unknown;
  isBroken(): boolean;
  release(): void;
}

export async function takeConnection(pool: pg.Pool): Promise<Connection> {
  const client = await pool.connect().catch(rethrow);
  let broken = false;
  let failure: unknown;
  const fail = (error: unknown): never => {
    broken ||= isBroken(error);
    failure ??= translateError(error);
    return rethrow(error);
  };
  const { stream } = client.connection;
  let isCorked = false;
  const uncork = (): void => {
    isCorked = false;
    stream.uncork();
  };
  function send<R extends Row>(query: string | Query): Promise<pg.QueryResult<R>> {
    // Statements of one tick are sent by one write: a write to the socket costs about as much as the rest of a
    // statement.
    if (!isCorked) {
      isCorked = true;
      stream.cork();
      process.nextTick(uncork);
    }
    return client.query<R>(query).catch(fail);
  }
  return {
    query: send,
    async insert<R extends Row>(queries: readonly Query[]) {
      const results = queries.map((query) => send<R>(query));
      await awaitAll(...results);
      return (await Promise.all(results)).flatMap(({ rows }) => rows);
    },
    failure: () => failure,
    isBroken: () => broken,
    release: () => client.release(broken),
  };
}

export function rethrow(error: unknown): never {
  throw translateError(error);
}
