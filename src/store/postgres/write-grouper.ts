import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Transaction, WriteOptions } from '../store.ts';
import { type StatementPreparer, takeConnection } from './connection.ts';
import { isConflict } from './errors.ts';
import { type MemberOutcome, runGroup, type Work } from './run-write-group.ts';
import { runTransaction } from './transaction.ts';

const MAX_TRIES = 5;
/** Two, so that the members of one group run while the commit of another one waits for the disk. */
const MAX_GROUPS = 2;
const MAX_GROUP_SIZE = 64;
/** A group that takes longer, such as one that waits for a lock, no longer counts towards MAX_GROUPS. */
const SLOW_GROUP_MS = 100;

interface PendingWrite {
  readonly work: Work;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export type Write = <T>(work: (tx: Transaction) => MaybePromise<T>, options?: WriteOptions) => Promise<T>;

/**
 * Runs each write in a transaction of its own, and retries it after a conflict. Append-only writes that arrive faster
 * than transactions commit are grouped: a group is one transaction, so it updates shared counters once and waits for
 * the disk once.
 */
export function createWriteGrouper(pool: pg.Pool, preparer: StatementPreparer): Write {
  let pending: PendingWrite[] = [];
  let freeGroups = MAX_GROUPS;
  let isScheduled = false;

  async function runWithRetries<T>(work: (tx: Transaction) => MaybePromise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await runTransaction(pool, preparer, work);
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES) throw error;
        // Jitter, so that the same transactions do not conflict again.
        await sleep(Math.random() * 10 * 2 ** tries);
      }
    }
  }

  /** Delayed, so that the writes of one turn of the event loop form a group. */
  function schedule(): void {
    if (isScheduled || freeGroups === 0) return;
    isScheduled = true;
    setImmediate(startGroups);
  }

  function startGroups(): void {
    isScheduled = false;
    while (freeGroups > 0 && pending.length > 0) {
      const writes = pending.splice(0, MAX_GROUP_SIZE);
      freeGroups--;
      const release = once(() => {
        freeGroups++;
        schedule();
      });
      const timer = setTimeout(release, SLOW_GROUP_MS);
      void run(writes).finally(() => {
        clearTimeout(timer);
        release();
      });
    }
  }

  function run(writes: readonly PendingWrite[]): Promise<unknown> {
    const [only] = writes;
    return only && writes.length === 1 ? runAlone(only) : runAsGroup(writes);
  }

  const runAlone = ({ work, resolve, reject }: PendingWrite): Promise<void> =>
    runWithRetries(work).then(resolve, reject);

  async function runAsGroup(writes: readonly PendingWrite[]): Promise<void> {
    const outcomes = await tryGroup(writes);
    const retried: PendingWrite[] = [];
    for (const [at, write] of writes.entries()) {
      const outcome = outcomes[at] as MemberOutcome;
      if (outcome.is === 'done') write.resolve(outcome.value);
      else if (outcome.is === 'failed') write.reject(outcome.error);
      else if (outcome.alone) void runAlone(write);
      else retried.push(write);
    }
    if (retried.length === 0) return;
    pending = [...retried, ...pending];
    schedule();
  }

  async function tryGroup(writes: readonly PendingWrite[]): Promise<MemberOutcome[]> {
    const works = writes.map(({ work }) => work);
    try {
      const connection = await takeConnection(pool);
      return await runGroup(connection, preparer, works).finally(connection.release);
    } catch (error) {
      return writes.map(() => ({ is: 'failed', error }));
    }
  }

  return <T>(work: (tx: Transaction) => MaybePromise<T>, { appendOnly = false }: WriteOptions = {}) => {
    if (!appendOnly) return runWithRetries(work);
    return new Promise<T>((resolve, reject) => {
      pending.push({ work, resolve: (value) => resolve(value as T), reject });
      schedule();
    });
  };
}

function once(action: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    action();
  };
}
