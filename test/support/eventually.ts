import { setTimeout as delay } from 'node:timers/promises';

const PATIENCE_MS = 60_000;

/** Looks again and again until what it sees is right, and answers that; for what happens soon after an answer. */
export async function until<T>(
  look: () => Promise<T>,
  isRight: (seen: T) => boolean,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const giveUp = performance.now() + patienceMs;
  for (;;) {
    const seen = await look();
    if (isRight(seen)) return seen;
    if (performance.now() > giveUp) throw new Error(`it never came: ${JSON.stringify(seen)}`);
    await delay(5);
  }
}
