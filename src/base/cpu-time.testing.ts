import assert from 'node:assert/strict';

/**
 * CPU milliseconds of this process during `run`. Unlike elapsed time, it does not grow when other processes are busy.
 */
export function cpuMsOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  return cpuMsSince(before);
}

export function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Some 20 ms of CPU time on a machine of 2024. */
const UNIT_STEPS = 20_000_000;
const MAX_UNITS = 20;

let unitMs: number | undefined;

/**
 * Fails when `run` takes more CPU time than MAX_UNITS units. A unit is the time of a fixed loop in this process, so
 * that the limit follows the speed of the machine.
 */
export function assertCheap(run: () => void, message: string): void {
  unitMs ??= cpuMsOf(() => {
    let sum = 0;
    for (let step = 0; step < UNIT_STEPS; step++) sum = (Math.imul(sum, 31) + step) | 0;
    assert.ok(Number.isInteger(sum));
  });
  const ms = cpuMsOf(run);
  assert.ok(ms < MAX_UNITS * unitMs, `${message}: ${ms} ms of CPU time, the limit is ${MAX_UNITS * unitMs} ms`);
}
