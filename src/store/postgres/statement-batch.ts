import type pg from 'pg';
import type { Insertion } from '../bulk-insert.ts';
import { refuseNul } from '../errors.ts';
import type { Row, Value } from '../store.ts';
import type { Connection, Preparing } from './connection.ts';

type Result = pg.QueryResult<Row>;

/** What the members of a group ask for between two turns of the event loop: it travels together. */
export interface Round {
  /** A question that several ask is asked once, unless one of them must see what it has just written. */
  read(sql: string, params: readonly Value[], isOwn: boolean): Promise<Result>;
  add(sql: string, params: readonly Value[]): Promise<Result>;
  /** Rows for one table become one statement, and everybody is answered what it returns of all of them. */
  insert(insertion: Insertion, values: readonly Value[]): Promise<Row[]>;
  send(): void;
  /** From here on nothing is sent any more: whoever asks gets this error. The first one stays. */
  fail(error: unknown): void;
  failure(): unknown;
}

/** The error of those in a group who did nothing wrong. */
export const APART = new Error('the writes of a group could not be made together');

interface Waiting {
  send(): void;
  reject(error: unknown): void;
}

interface WaitingRows {
  readonly values: Value[];
  readonly returned: Promise<Row[]>;
}

export function createRound({ ask, insert }: Connection, { statement, rows }: Preparing): Round {
  let waiting: Waiting[] = [];
  const questions = new Map<string, Promise<Result>>();
  const insertions = new Map<Insertion, WaitingRows>();
  let failure: unknown;
  let isScheduled = false;

  const fail = (error: unknown): void => {
    failure ??= error;
  };
  function later<T>(run: () => Promise<T>): Promise<T> {
    if (failure !== undefined) throw failure;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const failed = (error: unknown): void => {
      fail(error);
      reject(failure);
    };
    waiting.push({ send: () => void run().then(resolve, failed), reject });
    if (!isScheduled) setImmediate(send);
    isScheduled = true;
    return promise;
  }
  function send(): void {
    const all = waiting;
    waiting = [];
    isScheduled = false;
    questions.clear();
    insertions.clear();
    for (const each of all) {
      if (failure === undefined) each.send();
      else each.reject(failure);
    }
  }

  async function insertAll(insertion: Insertion, values: readonly Value[]): Promise<Row[]> {
    const queries = rows(insertion, values);
    const returned = await insert<Row>(queries);
    // A row that was left out may have met one of this group, so that two believe it to be theirs.
    const asked = values.length / Object.keys(insertion.columns).length;
    if (insertion.conflict === 'skip' && returned.length < asked) fail(APART);
    return returned;
  }

  return {
    read(sql, params, isOwn) {
      const query = statement(sql, params);
      if (isOwn) return later(() => ask(query));
      const key = JSON.stringify([sql, ...params]);
      const asked = questions.get(key) ?? later(() => ask(query));
      questions.set(key, asked);
      return asked;
    },
    add(sql, params) {
      const query = statement(sql, params);
      return later(() => ask(query));
    },
    insert(insertion, values) {
      refuseNul(values);
      const known = insertions.get(insertion);
      if (known) {
        for (const value of values) known.values.push(value);
        return known.returned;
      }
      const all = [...values];
      const returned = later(() => insertAll(insertion, all));
      insertions.set(insertion, { values: all, returned });
      return returned;
    },
    send,
    fail,
    failure: () => failure,
  };
}
