import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { unlessMissing } from '../../blobs/errors.ts';
import { tryLock } from '../../blobs/file-lock.ts';
import { createVerifyCursor } from '../../blobs/verify-cursor.ts';
import type { Reader } from '../../store/store.ts';
import { type Finding, verifyRegistry } from './verify-registry.ts';

export interface ScheduledVerificationOptions {
  readonly db: Reader;
  readonly blobs: Blobs;
  /** The directory of the blobs. */
  readonly directory: string;
  /** The time from the end of a verification to the next one. Infinity for none. */
  readonly intervalMs: number;
  readonly bytesPerSecond: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'countDamagedBlob'>;
}

export interface ScheduledVerification {
  /** Verifies the blobs if it is time to, and no other process of this machine does. */
  poll(): Promise<void>;
  /** Interrupts a verification. The next one continues it. */
  stop(): Promise<void>;
}

const POLL_MS = 10 * 60_000;

/** Verifies all blobs again and again, slowly. It only reports what it finds. */
export function scheduleVerification(options: ScheduledVerificationOptions): ScheduledVerification {
  const { directory, intervalMs, clock, log } = options;
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  async function pollOnce(): Promise<void> {
    if (!(await isDue(directory, intervalMs, clock()))) return;
    const unlock = tryLock(join(directory, 'verify.lock'));
    if (!unlock) return;
    try {
      if (await verify(options, stopping.signal)) await recordVerification(directory, clock());
    } finally {
      unlock();
    }
  }

  function poll(): Promise<void> {
    if (stopping.signal.aborted) return Promise.resolve();
    running ??= pollOnce()
      .catch((error: unknown) => log.warn({ error }, 'cannot verify the blobs'))
      .finally(() => {
        running = undefined;
      });
    return running;
  }

  const timer = intervalMs === Infinity ? undefined : setInterval(() => void poll(), POLL_MS).unref();
  return {
    poll,
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

/** Its time of change is the end of the last verification. */
const verifiedFile = (directory: string): string => join(directory, 'verified');

/** The first verification is due one interval after the first start. */
async function isDue(directory: string, intervalMs: number, now: number): Promise<boolean> {
  const last = await unlessMissing(stat(verifiedFile(directory)));
  if (last === undefined) await recordVerification(directory, now);
  return last !== undefined && last.mtimeMs + intervalMs <= now;
}

async function recordVerification(directory: string, now: number): Promise<void> {
  await writeFile(verifiedFile(directory), '', { mode: 0o600 });
  await utimes(verifiedFile(directory), new Date(now), new Date(now));
}

/** Returns whether it was completed. */
async function verify(options: ScheduledVerificationOptions, signal: AbortSignal): Promise<boolean> {
  const { db, blobs, directory, bytesPerSecond, log, metrics } = options;
  const cursor = createVerifyCursor(directory);
  log.info({ resumed: (await cursor.read())?.after }, 'verifying the blobs');
  const onFinding = ({ digest, problem, affected }: Finding): void => {
    metrics.countDamagedBlob(problem === 'missing' ? 'missing' : 'content');
    const images = affected.map(({ repository, tags }) => ({ repository, tags }));
    log.error({ digest, problem, images }, "a blob is damaged or missing; see 'wharf registry verify --quarantine'");
  };
  const { isComplete, ...result } = await verifyRegistry({ db, blobs, bytesPerSecond, signal, cursor, onFinding });
  log.info(result, isComplete ? 'verified the blobs' : 'the verification of the blobs was interrupted');
  return isComplete;
}
