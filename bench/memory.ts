/** Resident memory: idle, after many requests, and with a million repos; and whether it still grows at the end. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Dataset, dataset } from './data.ts';
import { residentMb } from './lib/cpu.ts';
import { httpLoad } from './lib/load.ts';
import { runAlone, type Suite, short } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { BIG, SMALL } from './lib/sizes.ts';
import { getPath, listPath } from './rest.ts';

/** A whole run has a million; a short one says how many it had. */
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 200_000);
const STEPS = 8;

/** Sends so many requests, nine gets to a list, and answers the memory after each eighth of them. */
async function exercise(
  server: BenchServer,
  data: Dataset,
  requests: number,
): Promise<{ sent: number; steps: number[] }> {
  const steps: number[] = [];
  const target = (path: string) => ({ url: server.url, path, headers: server.headers });
  let sent = 0;
  for (let step = 1; step <= STEPS; step++) {
    for (let round = 0; sent < (requests * step) / STEPS; round++) {
      sent += Math.round(2 * (await httpLoad(target(getPath(data, round % data.samples.length)), { seconds: 2 })));
      sent += Math.round(await httpLoad(target(listPath(data)), { seconds: 1 }));
    }
    steps.push(residentMb(server.pid));
  }
  return { sent, steps };
}

export const memory: Suite = async (print) => {
  const [small, big] = [await dataset(SMALL, print), await dataset(BIG, print)];
  // The first start of a version compiles it, which holds 20 MB more.
  await (await startBenchServer(small)).stop();
  const server = await startBenchServer(small);
  let idle: number;
  let after: { sent: number; steps: number[] };
  try {
    await delay(1_000);
    idle = residentMb(server.pid);
    after = await exercise(server, small, REQUESTS);
  } finally {
    await server.stop();
  }
  const large = await startBenchServer(big);
  let withMany: { sent: number; steps: number[] };
  try {
    withMany = await exercise(large, big, REQUESTS / 4);
  } finally {
    await large.stop();
  }
  const last = after.steps.at(-1) ?? 0;
  const half = after.steps[STEPS / 2 - 1] ?? 0;
  return [
    { benchmark: 'resident memory, idle', value: idle, unit: 'MB', bar: { atMost: 120 } },
    {
      benchmark: 'resident memory after many requests',
      value: last,
      unit: 'MB',
      bar: { atMost: 180 },
      figures: `${after.sent} requests, after each eighth: ${after.steps.map(short).join(', ')}`,
    },
    {
      benchmark: 'growth over the last half of them',
      value: (last / half - 1) * 100,
      unit: 'percent',
      bar: { atMost: 5 },
    },
    {
      benchmark: 'resident memory with a million repos',
      value: withMany.steps.at(-1) ?? 0,
      unit: 'MB',
      bar: { atMost: 250 },
      figures: `${withMany.sent} requests`,
    },
  ];
};

if (import.meta.main) await runAlone(memory);
