import { randomUUID } from 'node:crypto';
import type { Log } from '../base/log.ts';
import { getSetting, putSetting } from '../store/settings.ts';
import type { Store, Transaction } from '../store/store.ts';
import { isIncompleteBackup } from './incomplete-backup.ts';

export interface ScheduleOptions {
  readonly store: Store;
  readonly clock: () => number;
  readonly log: Log;
  readonly intervalMs: number;
  /** Creates a backup and removes old ones, outside of this process. Rejects with the reason if it fails. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

export interface BackupSchedule {
  /** Ends a backup that is running. */
  stop(): Promise<void>;
}

/** The setting by which the servers of a database agree which of them creates the next backup. */
export const SCHEDULE = 'backup.schedule';

export interface ScheduleState {
  /** When the next backup is due. Times are milliseconds since the epoch. */
  readonly next: number;
  /** Attempts that failed since the last success. */
  readonly failures: number;
  /** The server that is creating a backup. */
  readonly lease?: { readonly id: string; readonly until: number } | undefined;
}

const LEASE_MS = 5 * 60_000;
const RENEW_MS = LEASE_MS / 5;
const FIRST_POLL_MS = 3_000;
const POLL_MS = 30_000;
/** The delay before the first retry. It doubles with each failure, up to the interval. */
const RETRY_MS = 60_000;

/** Creates backups at an interval. Of all servers and workers of a database, one does so at a time. */
export function startBackupSchedule({ store, clock, log, intervalMs, run }: ScheduleOptions): BackupSchedule {
  const stopping = new AbortController();
  const pollMs = Math.min(POLL_MS, Math.max(100, intervalMs / 4));
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();

  const schedule = (delayMs: number): void => {
    timer = setTimeout(() => {
      running = turn()
        .catch((error: unknown) => log.warn({ error }, 'cannot read when the next backup is due'))
        .finally(() => {
          if (!stopping.signal.aborted) schedule(pollMs);
        });
    }, delayMs).unref();
  };

  async function turn(): Promise<void> {
    const id = randomUUID();
    if (!(await store.write((tx) => takeLease(tx, id, clock())))) return;
    const renewal = setInterval(
      () => void store.write((tx) => renewLease(tx, id, clock())).catch(() => {}),
      RENEW_MS,
    ).unref();
    const begun = clock();
    try {
      log.info({}, 'creating a scheduled backup');
      await run(stopping.signal);
      log.info({ durationMs: clock() - begun }, 'created a scheduled backup');
      await store.write((tx) => endLease(tx, id, { next: begun + intervalMs, failures: 0 }));
    } catch (error) {
      // A repetition would lack the same blobs, and each would take the place of an earlier backup in the retention.
      const retryMs = isIncompleteBackup(error) ? intervalMs : RETRY_MS;
      const failures = ((await readSchedule(store))?.failures ?? 0) + (stopping.signal.aborted ? 0 : 1);
      const delayMs = stopping.signal.aborted ? 0 : Math.min(intervalMs, retryMs * 2 ** Math.min(failures - 1, 20));
      if (!stopping.signal.aborted) log.error({ error, failures, retryMs: delayMs }, 'the scheduled backup failed');
      await store.write((tx) => endLease(tx, id, { next: clock() + delayMs, failures }));
    } finally {
      clearInterval(renewal);
    }
  }

  schedule(Math.min(FIRST_POLL_MS, pollMs));
  return {
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await running;
    },
  };
}

export async function readSchedule(store: Pick<Store, 'reader'>): Promise<ScheduleState | undefined> {
  const text = await getSetting(store.reader, SCHEDULE);
  return text ? JSON.parse(text) : undefined;
}

/** Takes the lease if a backup is due and no other server is creating one. */
async function takeLease(tx: Transaction, id: string, now: number): Promise<boolean> {
  const state = await readLocked(tx);
  if (state.next > now || (state.lease && state.lease.until > now)) return false;
  await save(tx, { ...state, lease: { id, until: now + LEASE_MS } });
  return true;
}

async function renewLease(tx: Transaction, id: string, now: number): Promise<void> {
  const state = await readLocked(tx);
  if (state.lease?.id === id) await save(tx, { ...state, lease: { id, until: now + LEASE_MS } });
}

/** If another server has taken over, its state stays. */
async function endLease(tx: Transaction, id: string, state: Omit<ScheduleState, 'lease'>): Promise<void> {
  if ((await readLocked(tx)).lease?.id === id) await save(tx, state);
}

async function readLocked(tx: Transaction): Promise<ScheduleState> {
  const text = await getSetting(tx.forUpdate, SCHEDULE);
  return text ? JSON.parse(text) : { next: 0, failures: 0 };
}

const save = (tx: Transaction, state: ScheduleState): Promise<void> => putSetting(tx, SCHEDULE, JSON.stringify(state));
