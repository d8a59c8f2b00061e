import type pg from 'pg';
import { awaitAll } from '../await-all.ts';
import { type BulkInsert, columnCount } from '../bulk-insert.ts';
import { refuseNul } from '../errors.ts';
import type { Row, Value } from '../store.ts';
import { insertText, toColumnArrays } from './bulk-insert.ts';
import { isBroken, translate } from './errors.ts';

const MAX_PREPARED = 500;

export type Query = pg.QueryConfig<Value[]>;

/** What the transactions of a store make their statements with. */
export interface StatementPreparer {
  statement(sql: string, params: readonly Value[]): Query;
  /** The statements, in their order, that insert these rows. */
  rows(insertion: BulkInsert, values: readonly Value[]): Query[];
}

/** A statement with a name is parsed and planned once per connection. */
export function createStatementPreparer(): StatementPreparer {
  const names = new Map<string, string>();
  const named = (text: string, values: Value[]): Query => {
    let name = names.get(text);
    // Beyond the limit a text is planned for each use: the database keeps what has a name for as long as the connection.
    if (name === undefined && names.size >= MAX_PREPARED) return { text, values };
    if (name === undefined) {
      name = `w${names.size}`;
      names.set(text, name);
    }
    return { name, text, values };
  };
  return {
    statement(text, values) {
      refuseNul(values);
      return named(text, [...values]);
    },
    rows(insertion, values) {
      refuseNul(values);
      return [...toColumnArrays(values, columnCount(insertion))].map((columns) =>
        named(insertText(insertion), columns),
      );
    },
  };
}

/** A connection for as long as one transaction takes. */
export interface Connection {
  query<R extends Row>(query: string | Query): Promise<pg.QueryResult<R>>;
  insert<R extends Row>(queries: readonly Query[]): Promise<R[]>;
  /** The first error that a statement met. */
  failure(): unknown;
  isBroken(): boolean;
  release(): void;
}

export async function takeConnection(pool: pg.Pool): Promise<Connection> {
  const client = await pool.connect().catch(rethrow);
  let broken = false;
  let failure: unknown;
  const failed = (error: unknown): never => {
    broken ||= isBroken(error);
    failure ??= translate(error);
    return rethrow(error);
  };
  const { stream } = client.connection;
  let isHeld = false;
  const sendHeld = (): void => {
    isHeld = false;
    stream.uncork();
  };
  function ask<R extends Row>(query: string | Query): Promise<pg.QueryResult<R>> {
    // What is asked in one go leaves in one go: each write to the socket costs about as much as all else about a statement.
    if (!isHeld) {
      isHeld = true;
      stream.cork();
      process.nextTick(sendHeld);
    }
    return client.query<R>(query).catch(failed);
  }
  return {
    query: ask,
    async insert<R extends Row>(queries: readonly Query[]) {
      const results = queries.map((query) => ask<R>(query));
      await awaitAll(...results);
      return (await Promise.all(results)).flatMap(({ rows }) => rows);
    },
    failure: () => failure,
    isBroken: () => broken,
    release: () => client.release(broken),
  };
}

export function rethrow(error: unknown): never {
  throw translate(error);
}
