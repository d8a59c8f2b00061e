import type pg from 'pg';
import { refuseNul } from '../errors.ts';
import { type PointRead, pointReadOf } from '../point-read.ts';
import type { Row, Value } from '../store.ts';
import { toColumnArrays } from './bulk-insert.ts';
import type { Query, StatementPreparer } from './connection.ts';
import { type Batcher, createBatcher } from './read-batcher.ts';

type Key = readonly Value[];

/** Runs one statement. */
export type Run = <R extends Row | Value[]>(query: Query) => Promise<pg.QueryResult<R>>;

export interface Reads {
  all(sql: string, params: readonly Value[]): Promise<Row[]>;
  get(sql: string, params: readonly Value[]): Promise<Row | undefined>;
  /** Whether all that was asked is answered. */
  isIdle(): boolean;
}

/**
 * Reads outside of transactions. Those by key that come at the same time are one statement, whatever their keys; of all
 * others, those that ask for the same.
 */
export function createReads(run: Run, preparing: StatementPreparer): Reads {
  const points = new Map<PointRead, Batcher<Key, Row | undefined>>();
  const same = new Map<string, Batcher<undefined, Row[]>>();

  async function all(sql: string, params: readonly Value[]): Promise<Row[]> {
    const query = preparing.statement(sql, params);
    const key = JSON.stringify([sql, ...params]);
    const asking = same.get(key) ?? createBatcher<undefined, Row[]>(({ length }) => answerAlike(run, query, length));
    same.set(key, asking);
    try {
      return await asking.load(undefined);
    } finally {
      // Forgotten with its last answer, unless somebody asks again meanwhile.
      if (asking.isIdle() && same.get(key) === asking) same.delete(key);
    }
  }

  function point(read: PointRead, key: Key): Promise<Row | undefined> {
    refuseNul(key);
    const asking = points.get(read) ?? createBatcher(pointAnswers(run, preparing, read));
    points.set(read, asking);
    return asking.load(key);
  }

  return {
    all,
    get(sql, params) {
      const read = pointReadOf(sql);
      return read ? point(read, params) : all(sql, params).then(([row]) => row);
    },
    isIdle: () => same.size === 0 && points.values().every((asking) => asking.isIdle()),
  };
}

async function answerAlike(run: Run, query: Query, askers: number): Promise<Row[][]> {
  const { rows } = await run<Row>(query);
  // Each has an array of its own, as it may be sorted.
  return askers === 1 ? [rows] : Array.from({ length: askers }, () => [...rows]);
}

function pointAnswers(run: Run, preparing: StatementPreparer, read: PointRead) {
  const text = batchText(read);
  return async (keys: readonly Key[]): Promise<(Row | undefined)[]> => {
    const [columns = []] = toColumnArrays(keys.flat(), read.key.length);
    const query = { ...preparing.statement(text, columns), rowMode: 'array' };
    const { rows } = await run<Value[]>(query);
    const found: (Row | undefined)[] = keys.map(() => undefined);
    for (const [place, ...values] of rows) found[Number(place) - 1] = rowOf(read.columns, values);
    return found;
  };
}

/** Rows with the place of their key among those asked for, from 1 on. */
function batchText({ columns, from, key }: PointRead): string {
  const names = key.map((_, at) => `k${at}`);
  const arrays = key.map((_, at) => `$${at + 1}::text[]`);
  const match = key.map((column, at) => `t.${column} = asked.${names[at]}`);
  return `SELECT asked.place, ${columns.map((column) => `t.${column}`).join(', ')}
    FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS asked (${names.join(', ')}, place)
    JOIN ${from} t ON ${match.join(' AND ')}`;
}

function rowOf(columns: readonly string[], values: readonly Value[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at] as Value;
  return row;
}
