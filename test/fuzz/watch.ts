import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** The most processor time that the server may take until it answers a health check. */
export const MAX_HEALTH_MS = 100;
const INTERVAL_MS = 200;

/** Processor time of the main thread of a process, in milliseconds. It does not grow when other processes are busy. */
function threadCpuMs(pid: number): number {
  const [nanoseconds = '0'] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

export interface HealthWatch {
  /** The longest processor time of a health check so far. */
  longestMs(): number;
  checks(): number;
  stop(): Promise<void>;
}

/** Sends a health check five times a second, and measures the processor time until its answer. */
export function watchHealth(url: string, pid: number, fail: (problem: string) => void): HealthWatch {
  const agent = new Agent({ keepAlive: true });
  let longest = 0;
  let checks = 0;
  let isStopped = false;
  const check = () =>
    new Promise<number | undefined>((resolve, reject) => {
      get(`${url}/healthz`, { agent, timeout: 30_000 }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      })
        .on('timeout', () => reject(new Error('no answer within 30 s')))
        .on('error', reject);
    });
  const loop = (async () => {
    while (!isStopped) {
      const before = threadCpuMs(pid);
      try {
        const status = await check();
        if (status !== 200) fail(`/healthz returned ${status}`);
      } catch (error) {
        if (!isStopped) fail(`/healthz failed: ${error}`);
        return;
      }
      const ms = threadCpuMs(pid) - before;
      checks++;
      longest = Math.max(longest, ms);
      if (ms > MAX_HEALTH_MS) fail(`/healthz was answered after ${ms.toFixed(0)} ms of processor time`);
      await delay(INTERVAL_MS);
    }
  })();
  return {
    longestMs: () => longest,
    checks: () => checks,
    async stop() {
      isStopped = true;
      await loop;
      agent.destroy();
    },
  };
}
