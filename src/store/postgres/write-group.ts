import type { Insertion } from '../bulk-insert.ts';
import type { Maybe, Row, Transaction, Value } from '../store.ts';
import { openSession } from '../transaction-guard.ts';
import type { Connection, Preparing } from './connection.ts';
import { APART, createRound, type Round } from './statement-batch.ts';
import { BYTEWISE, commit, LOCK, rollBack } from './transaction.ts';

export type Work = (tx: Transaction) => Maybe<unknown>;

/** What became of one work: an answer, or that it must run again, with others or by itself. */
export type Outcome =
  | { readonly is: 'done'; readonly value: unknown }
  | { readonly is: 'failed'; readonly error: unknown }
  | { readonly is: 'again'; readonly alone: boolean };

/**
 * One who waits for a lock keeps the whole group waiting, so it does not wait for long; by itself it may. Much longer than
 * groups of other servers take, which hold the counters of an organization until they commit.
 */
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 500';

/** Reads, and at most keeps from being deleted, which all may do at the same time. */
const READS = /^\s*SELECT\b(?!.*\bFOR UPDATE\b)/s;
const ADDS = /^\s*INSERT\b/;

/** The error of a member that does more than that: it must be by itself. */
const ASIDE = new Error('a write that changes something cannot share its transaction');

/**
 * Runs works that only add in one transaction and at the same time: what they ask for together travels together. They see
 * each other's rows, as if one had come before the other; and so it is, because either all commit or none. When one fails
 * that has written, all are undone, and the others run again without it.
 */
export async function runTogether(
  connection: Connection,
  preparing: Preparing,
  works: readonly Work[],
): Promise<Outcome[]> {
  const round = createRound(connection, preparing);
  // Not awaited: the first statements travel with it, and fail if it does.
  connection.ask(BEGIN).catch(round.fail);
  const members = works.map((work) => createMember(round, work));
  const outcomes = await Promise.all(members.map((member) => member.run()));
  round.send();
  try {
    if (round.failure() === undefined) {
      await commit(connection);
      return outcomes;
    }
  } catch (error) {
    // Perhaps it was committed: then nobody may run again.
    if (connection.isBroken()) return members.map(() => ({ is: 'failed', error }));
  }
  await rollBack(connection);
  const hasCulprit = members.some((member) => member.isCulprit());
  return members.map((member) => ({ is: 'again', alone: member.isCulprit() || !hasCulprit }));
}

interface Member {
  run(): Promise<Outcome>;
  /** Whether it had written when it failed by itself. */
  isCulprit(): boolean;
}

function createMember(round: Round, work: Work): Member {
  let wrote = false;
  let isCulprit = false;

  const ask = async (sql: string, params: readonly Value[]) => {
    if (READS.test(sql)) return round.read(sql, params, wrote);
    if (!ADDS.test(sql)) throw ASIDE;
    wrote = true;
    return round.add(sql, params);
  };
  const session = openSession({
    all: async <R extends Row>(sql: string, ...params: Value[]) => [...(await ask(sql, params)).rows] as R[],
    get: async <R extends Row>(sql: string, ...params: Value[]) => (await ask(sql, params)).rows[0] as R | undefined,
    run: async (sql, ...params) => (await ask(sql, params)).rowCount ?? 0,
    insert<R extends Row>(insertion: Insertion, values: readonly Value[]) {
      wrote = true;
      return round.insert(insertion, values) as Promise<R[]>;
    },
    bytewise: BYTEWISE,
    lock: LOCK,
  });

  return {
    async run() {
      try {
        const value = await work(session.tx);
        if (session.failure() !== undefined) throw session.failure();
        return { is: 'done', value };
      } catch (error) {
        isCulprit = wrote && error !== round.failure();
        if (wrote) round.fail(APART);
        return session.failure() === ASIDE ? { is: 'again', alone: true } : { is: 'failed', error };
      } finally {
        session.end();
      }
    },
    isCulprit: () => isCulprit,
  };
}
