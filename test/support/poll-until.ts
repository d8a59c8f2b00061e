import { setTimeout as delay } from 'node:timers/promises';

const TIMEOUT_MS = 60_000;
const INTERVAL_MS = 5;

/** Calls `read` repeatedly until `isDone` accepts its result, and returns that result. */
export async function pollUntil<T>(
  read: () => Promise<T>,
  isDone: (result: T) => boolean,
  timeoutMs = TIMEOUT_MS,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const result = await read();
    if (isDone(result)) return result;
    if (performance.now() > deadline) throw new Error(`timed out; the last result is ${JSON.stringify(result)}`);
    await delay(INTERVAL_MS);
  }
}
