/** What 50 connections of an unauthenticated client cost: the latency of other clients, and memory. */
import { setTimeout as delay } from 'node:timers/promises';
import { ensureDataset } from './data.ts';
import { startChildProgram } from './lib/child-program.ts';
import { residentMb } from './lib/cpu.ts';
import { formatFigure, runSuite, type Suite } from './lib/result.ts';
import { startBenchServer } from './lib/server.ts';
import { SMALL } from './lib/sizes.ts';

const ATTACK_SECONDS = 60;
const RECOVERY_SECONDS = 60;
/** The time between two requests of the other client. */
const INTERVAL_MS = 50;

/** Requests /healthz until the time is over. Returns the latencies in milliseconds, in order of size. */
async function measureHealth(url: string, seconds: number, between: () => void): Promise<number[]> {
  const latencies: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const started = performance.now();
    const response = await fetch(`${url}/healthz`);
    await response.text();
    if (response.status !== 200) throw new Error(`/healthz returned ${response.status}`);
    latencies.push(performance.now() - started);
    between();
    await delay(INTERVAL_MS);
  }
  return latencies.sort((a, b) => a - b);
}

export const attack: Suite = async (print) => {
  const server = await startBenchServer(await ensureDataset(SMALL, print));
  const attacker = startChildProgram('attacker.ts');
  try {
    let peak = 0;
    const sample = (): void => {
      peak = Math.max(peak, residentMb(server.pid));
    };
    await attacker.request({ attack: Number(new URL(server.url).port) });
    const latencies = await measureHealth(server.url, ATTACK_SECONDS, sample);
    const percentile = (part: number): number => latencies[Math.ceil(part * latencies.length) - 1] ?? Number.NaN;
    await attacker.request({ hold: true });
    await delay(RECOVERY_SECONDS * 1000);
    const after = residentMb(server.pid);
    return [
      {
        benchmark: '/healthz during an attack by 50 unauthenticated connections, 99th percentile',
        value: percentile(0.99),
        unit: 'ms',
        limit: { atMost: 250 },
        figures: `median ${formatFigure(percentile(0.5))} ms, at worst ${formatFigure(percentile(1))} ms, ${latencies.length} requests`,
      },
      { benchmark: 'resident memory during this attack, at worst', value: peak, unit: 'MB', limit: { atMost: 400 } },
      {
        benchmark: 'resident memory one minute after this attack, with its connections open',
        value: after,
        unit: 'MB',
        limit: { atMost: 200 },
      },
    ];
  } finally {
    await attacker.stop();
    await server.stop();
  }
};

if (import.meta.main) await runSuite(attack);
