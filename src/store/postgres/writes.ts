import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Transaction, WriteOptions } from '../store.ts';
import { type StatementPreparer, takeConnection } from './connection.ts';
import { isConflict } from './errors.ts';
import { runTransaction } from './transaction.ts';
import { type Outcome, runGroup, type Work } from './write-group.ts';

const MAX_TRIES = 5;
/** Two, so that one group is put together while the other waits for the disk. */
const LANES = 2;
const MAX_GROUP = 64;
/** A write that takes longer, such as one that waits for a lock, keeps nobody else from going. */
const LANE_MS = 100;

interface Job {
  readonly work: Work;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export type Write = <T>(work: (tx: Transaction) => MaybePromise<T>, options?: WriteOptions) => Promise<T>;

/**
 * Each write is a transaction of its own, tried again when it loses against another one. Those that only add share one
 * while they come faster than transactions end, and with it the counters that they all change and the wait for the disk.
 */
export function createWrites(pool: pg.Pool, preparing: StatementPreparer): Write {
  let waiting: Job[] = [];
  let lanes = LANES;
  let isComing = false;

  async function alone<T>(work: (tx: Transaction) => MaybePromise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await runTransaction(pool, preparing, work);
      } catch (error) {
        if (!isConflict(error) || tries === MAX_TRIES) throw error;
        // Jitter, or those that met once would meet again.
        await sleep(Math.random() * 10 * 2 ** tries);
      }
    }
  }

  /** Calls that arrive in the same turn of the event loop go together. */
  function proceedSoon(): void {
    if (isComing || lanes === 0) return;
    isComing = true;
    setImmediate(proceed);
  }

  function proceed(): void {
    isComing = false;
    while (lanes > 0 && waiting.length > 0) {
      const jobs = waiting.splice(0, MAX_GROUP);
      lanes--;
      const leave = once(() => {
        lanes++;
        proceedSoon();
      });
      const timer = setTimeout(leave, LANE_MS);
      void run(jobs).finally(() => {
        clearTimeout(timer);
        leave();
      });
    }
  }

  function run(jobs: readonly Job[]): Promise<unknown> {
    const [only] = jobs;
    return only && jobs.length === 1 ? runAlone(only) : runJobs(jobs);
  }

  const runAlone = ({ work, resolve, reject }: Job): Promise<void> => alone(work).then(resolve, reject);

  async function runJobs(jobs: readonly Job[]): Promise<void> {
    const outcomes = await attempt(jobs);
    const again: Job[] = [];
    for (const [at, job] of jobs.entries()) {
      const outcome = outcomes[at] as Outcome;
      if (outcome.is === 'done') job.resolve(outcome.value);
      else if (outcome.is === 'failed') job.reject(outcome.error);
      else if (outcome.alone) void runAlone(job);
      else again.push(job);
    }
    if (again.length === 0) return;
    waiting = [...again, ...waiting];
    proceedSoon();
  }

  async function attempt(jobs: readonly Job[]): Promise<Outcome[]> {
    const works = jobs.map(({ work }) => work);
    try {
      const connection = await takeConnection(pool);
      return await runGroup(connection, preparing, works).finally(connection.release);
    } catch (error) {
      return jobs.map(() => ({ is: 'failed', error }));
    }
  }

  return <T>(work: (tx: Transaction) => MaybePromise<T>, { appendOnly = false }: WriteOptions = {}) => {
    if (!appendOnly) return alone(work);
    return new Promise<T>((resolve, reject) => {
      waiting.push({ work, resolve: (value) => resolve(value as T), reject });
      proceedSoon();
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
