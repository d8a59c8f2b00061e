/** Resident memory: idle, after many requests, with a million repos, and its growth over the last requests. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Dataset, ensureDataset } from './data.ts';
import { GET_REPO_PATH as GET_REPO, getRepoRequest } from './grpc.ts';
import { residentMb } from './lib/cpu.ts';
import { grpcLoad, httpLoad } from './lib/load.ts';
import { formatFigure, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { LARGE, SMALL } from './lib/sizes.ts';
import { getPath, listPath } from './rest.ts';

/** The number of requests. Set BENCH_REQUESTS=1000000 for the results in docs/PERFORMANCE.md. */
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 200_000);
const STEPS = 8;

/** Sends requests, about nine gets for each list, and returns the memory after each eighth of them. */
async function sendRequests(
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

/** Calls one method over gRPC and returns the memory afterwards. */
async function sendGrpcCalls(server: BenchServer, data: Dataset, calls: number): Promise<{ sent: number; mb: number }> {
  const target = { url: server.url, path: GET_REPO, headers: server.headers };
  let sent = 0;
  while (sent < calls) sent += Math.round(2 * (await grpcLoad(target, getRepoRequest(data), 2)));
  return { sent, mb: residentMb(server.pid) };
}

export const memory: Suite = async (print) => {
  const [small, large] = [await ensureDataset(SMALL, print), await ensureDataset(LARGE, print)];
  const server = await startBenchServer(small);
  let idle: number;
  let after: { sent: number; steps: number[] };
  let overGrpc: { sent: number; mb: number };
  try {
    await delay(1_000);
    idle = residentMb(server.pid);
    after = await sendRequests(server, small, REQUESTS);
    overGrpc = await sendGrpcCalls(server, small, REQUESTS / 2);
  } finally {
    await server.stop();
  }
  const largeServer = await startBenchServer(large);
  let withManyRepos: { sent: number; steps: number[] };
  try {
    withManyRepos = await sendRequests(largeServer, large, REQUESTS / 4);
  } finally {
    await largeServer.stop();
  }
  const last = after.steps.at(-1) ?? 0;
  const half = after.steps[STEPS / 2 - 1] ?? 0;
  return [
    { benchmark: 'resident memory, idle', value: idle, unit: 'MB', limit: { atMost: 120 } },
    {
      benchmark: 'resident memory after many requests',
      value: last,
      unit: 'MB',
      limit: { atMost: 180 },
      figures: `${after.sent} requests, after each eighth: ${after.steps.map(formatFigure).join(', ')}`,
    },
    {
      benchmark: 'growth of resident memory over the last half of these requests',
      value: (last / half - 1) * 100,
      unit: 'percent',
      limit: { atMost: 5 },
    },
    {
      benchmark: 'resident memory after many more calls over gRPC',
      value: overGrpc.mb,
      unit: 'MB',
      figures: `${overGrpc.sent} calls`,
    },
    {
      benchmark: 'resident memory with a million repos',
      value: withManyRepos.steps.at(-1) ?? 0,
      unit: 'MB',
      limit: { atMost: 250 },
      figures: `${withManyRepos.sent} requests`,
    },
  ];
};

if (import.meta.main) await runSuite(memory);
