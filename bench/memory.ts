/** Resident memory: idle, after many requests, and with a million repos; and whether it still grows at the end. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Dataset, dataset } from './data.ts';
import { PATH as GET_REPO, getRepo } from './grpc.ts';
import { residentMb } from './lib/cpu.ts';
import { grpcLoad, httpLoad } from './lib/load.ts';
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

/** The same over gRPC, by calls of one method. */
async function exerciseGrpc(server: BenchServer, data: Dataset, calls: number): Promise<{ sent: number; mb: number }> {
  const target = { url: server.url, path: GET_REPO, headers: server.headers };
  let sent = 0;
  while (sent < calls) sent += Math.round(2 * (await grpcLoad(target, getRepo(data), 2)));
  return { sent, mb: residentMb(server.pid) };
}

export const memory: Suite = async (print) => {
  const [small, big] = [await dataset(SMALL, print), await dataset(BIG, print)];
  const server = await startBenchServer(small);
  let idle: number;
  let after: { sent: number; steps: number[] };
  let overGrpc: { sent: number; mb: number };
  try {
    await delay(1_000);
    idle = residentMb(server.pid);
    after = await exercise(server, small, REQUESTS);
    overGrpc = await exerciseGrpc(server, small, REQUESTS / 2);
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
      benchmark: 'resident memory after many calls over gRPC as well',
      value: overGrpc.mb,
      unit: 'MB',
      figures: `${overGrpc.sent} calls`,
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
