import type pg from 'pg';
import { refuseNul } from '../errors.ts';
import { type PointRead, pointReadOf } from '../point-read.ts';
import type { Row, Value } from '../value.ts';
import { toColumnArrays } from './bulk-insert.ts';
import type { Query, StatementPreparer } from './connection.ts';
import { type Batcher, createBatcher } from './read-batcher.ts';

type Key = readonly Value[];

/** Runs one statement. */
export type Run = <R extends Row | Value[]>(query: Query) => Promise<pg.QueryResult<R>>;

export interface Reads {
  all(sql: string, params: readonly Value[]): Promise<Row[]>;
  get(sql: string, params: readonly Value[]): Promise<Row | undefined>;
  /** Whether all reads have returned. */
  isIdle(): boolean;
}

/**
 * Reads outside of transactions. Concurrent point reads of one table are batched into one statement. Of all other
 * reads, those with equal text and parameters share one statement.
 */
export function createReads(run: Run, preparer: StatementPreparer): Reads {
  const pointBatchers = new Map<PointRead, Batcher<Key, Row | undefined>>();
  const equalReads = new Map<string, Batcher<undefined, Row[]>>();

  async function all(sql: string, params: readonly Value[]): Promise<Row[]> {
    const query = preparer.prepare(sql, params);
    const key = JSON.stringify([sql, ...params]);
    const batcher =
      equalReads.get(key) ?? createBatcher<undefined, Row[]>(({ length }) => runShared(run, query, length));
    equalReads.set(key, batcher);
    try {
      return await batcher.load(undefined);
    } finally {
      if (batcher.isIdle() && equalReads.get(key) === batcher) equalReads.delete(key);
    }
  }

  function readPoint(read: PointRead, key: Key): Promise<Row | undefined> {
    refuseNul(key);
    const batcher = pointBatchers.get(read) ?? createBatcher(pointLoader(run, preparer, read));
    pointBatchers.set(read, batcher);
    return batcher.load(key);
  }

  return {
    all,
    get(sql, params) {
      const read = pointReadOf(sql);
      return read ? readPoint(read, params) : all(sql, params).then(([row]) => row);
    },
    isIdle: () => equalReads.size === 0 && pointBatchers.values().every((batcher) => batcher.isIdle()),
  };
}

async function runShared(run: Run, query: Query, readers: number): Promise<Row[][]> {
  const { rows } = await run<Row>(query);
  // Each reader gets its own array, because it may sort it.
  return readers === 1 ? [rows] : Array.from({ length: readers }, () => [...rows]);
}

function pointLoader(run: Run, preparer: StatementPreparer, read: PointRead) {
  const text = batchText(read);
  return async (keys: readonly Key[]): Promise<(Row | undefined)[]> => {
    const [columns = []] = toColumnArrays(keys.flat(), read.key.length);
    const query = { ...preparer.prepare(text, columns), rowMode: 'array' };
    const { rows } = await run<Value[]>(query);
    const found: (Row | undefined)[] = keys.map(() => undefined);
    for (const [position, ...values] of rows) found[Number(position) - 1] = rowOf(read.columns, values);
    return found;
  };
}

/** Returns the text that reads the rows of many keys, each with the position of its key, counted from 1. */
function batchText({ columns, from, key }: PointRead): string {
  const names = key.map((_, at) => `k${at}`);
  const arrays = key.map((_, at) => `$${at + 1}::text[]`);
  const match = key.map((column, at) => `t.${column} = requested.${names[at]}`);
  return `SELECT requested.position, ${columns.map((column) => `t.${column}`).join(', ')}
    FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS requested (${names.join(', ')}, position)
    JOIN ${from} t ON ${match.join(' AND ')}`;
}

function rowOf(columns: readonly string[], values: readonly Value[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at] as Value;
  return row;
}
