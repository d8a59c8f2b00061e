import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const INTERVAL_MS = 10_000;
/** A process that uses less of a processor is idle. */
const IDLE_SHARE = 0.1;
/** Nothing is collected before the process has grown by this much since its start. */
const GROWTH_BYTES = 16 * 2 ** 20;
/** The most intervals between two collections of an idle process. */
const LONGEST_PAUSE = 60;

export interface IdleCollectorOptions {
  /** The resident memory of the process in bytes. */
  readonly residentBytes: () => number;
  /** The processor time of the process in microseconds. */
  readonly cpuMicroseconds: () => number;
  readonly collect: () => void;
}

/**
 * Returns a function to call in regular intervals. It collects garbage when the process is idle after it has grown. V8
 * collects while memory is allocated, so a server would keep the garbage of a burst of requests until the next one.
 * While the process stays idle, a collection is repeated after twice the time: connections that time out leave garbage
 * later.
 */
export function createIdleCollector({ residentBytes, cpuMicroseconds, collect }: IdleCollectorOptions) {
  const startBytes = residentBytes();
  let previousCpu = cpuMicroseconds();
  let pause = 1;
  let waited = 0;
  return (elapsedMs: number): void => {
    const cpu = cpuMicroseconds();
    const share = (cpu - previousCpu) / 1000 / elapsedMs;
    previousCpu = cpu;
    if (share > IDLE_SHARE) {
      pause = 1;
      waited = 0;
    } else if (++waited >= pause && residentBytes() >= startBytes + GROWTH_BYTES) {
      collect();
      pause = Math.min(2 * pause, LONGEST_PAUSE);
      waited = 0;
    }
  };
}

/** Collects garbage whenever this process is idle. */
export function collectWhenIdle(): void {
  let collectGarbage: (() => void) | undefined;
  const check = createIdleCollector({
    residentBytes: process.memoryUsage.rss,
    cpuMicroseconds() {
      const { user, system } = process.cpuUsage();
      return user + system;
    },
    collect() {
      collectGarbage ??= garbageCollector();
      collectGarbage();
    },
  });
  setInterval(() => check(INTERVAL_MS), INTERVAL_MS).unref();
}

/** V8 has the function only in contexts that are created after the flag is set. */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
