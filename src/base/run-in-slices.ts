import { setImmediate as nextTurn } from 'node:timers/promises';

const SLICE_MS = 10;

/** Runs a generator to its end. After each slice of time, other work of the event loop runs first. */
export async function runInSlices<T>(steps: Generator<unknown, T>, sliceMs = SLICE_MS): Promise<T> {
  let started = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() - started < sliceMs) continue;
    await nextTurn();
    started = performance.now();
  }
}

/** Runs a generator to its end at once. */
export function runAtOnce<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}
