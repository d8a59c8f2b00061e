import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';

/** How long a value is used before it is read again. */
const AGE_MS = 60_000;
/** How long the first request waits for a value. Later ones get the last value at once. */
const FIRST_WAIT_MS = 500;

export interface BackgroundReaderOptions {
  readonly clock: Clock;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Returns a function that returns the last value that `read` returned, with the time when reading it began. If the value
 * is older than a minute, it starts to read a new one in the background. It rejects while there is no value yet.
 */
export function createBackgroundReader<T>(
  read: () => Promise<T>,
  { clock, onFailure }: BackgroundReaderOptions,
): () => Promise<{ readonly value: T; readonly time: number }> {
  let last: { readonly value: T; readonly time: number } | undefined;
  let reading: Promise<void> | undefined;

  async function readNext(): Promise<void> {
    const time = clock();
    try {
      last = { value: await read(), time };
    } catch (error) {
      onFailure(error);
    } finally {
      reading = undefined;
    }
  }

  return async () => {
    if (last === undefined || clock() - last.time >= AGE_MS) reading ??= readNext();
    if (last === undefined) await Promise.race([reading, delay(FIRST_WAIT_MS, undefined, { ref: false })]);
    if (last === undefined) throw new Error('the first value is being read');
    return last;
  };
}
