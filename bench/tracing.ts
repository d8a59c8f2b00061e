/** The processor time of a get over REST on a server that exports traces, compared with one that does not. */
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Dataset, ensureDataset } from './data.ts';
import { compareInTurn } from './lib/compare.ts';
import { cpuSeconds } from './lib/cpu.ts';
import { httpLoad } from './lib/load.ts';
import { type BenchmarkResult, formatFigure, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { SMALL } from './lib/sizes.ts';
import { getPath } from './rest.ts';

const WARM_UP_SECONDS = 6;
const ROUNDS = 7;
const ROUND_SECONDS = 2;

/** A collector that accepts everything. It runs in this process, whose processor time does not count. */
async function startCollector(): Promise<{ readonly url: string; stop(): void }> {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

/** Returns the processor time of a get in microseconds. */
async function costOfGet({ url, pid, headers }: BenchServer, path: string, seconds: number): Promise<number> {
  const before = cpuSeconds(pid) ?? Number.NaN;
  const perSecond = await httpLoad({ url, path, headers }, { seconds });
  return (((cpuSeconds(pid) ?? Number.NaN) - before) / (perSecond * seconds)) * 1e6;
}

async function compareWithPlain(data: Dataset, copy: Dataset, env: Record<string, string>) {
  const plain = await startBenchServer(data);
  const traced = await startBenchServer(copy, { env });
  const path = getPath(data);
  try {
    for (const server of [plain, traced]) await costOfGet(server, path, WARM_UP_SECONDS);
    return await compareInTurn(
      ROUNDS,
      () => costOfGet(traced, path, ROUND_SECONDS),
      () => costOfGet(plain, path, ROUND_SECONDS),
    );
  } finally {
    await Promise.all([plain.stop(), traced.stop()]);
  }
}

export const tracing: Suite = async (print) => {
  const data = await ensureDataset(SMALL, print);
  // Only one server can use a data directory.
  const directory = mkdtempSync(join(tmpdir(), 'wharf-bench-tracing-'));
  cpSync(data.dataDir, directory, { recursive: true });
  const collector = await startCollector();
  const results: BenchmarkResult[] = [];
  try {
    for (const [part, ratio, atMost] of [
      ['10 %', '0.1', 1.5],
      ['all', '1', 6],
    ] as const) {
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
        OTEL_TRACES_SAMPLER_ARG: ratio,
      };
      const { ratio: value, a, b } = await compareWithPlain(data, { ...data, dataDir: directory }, env);
      results.push({
        benchmark: `Processor time of a REST get, ${part} recorded as traces`,
        baseline: 'the same without traces',
        value,
        unit: 'times',
        limit: { atMost },
        figures: `${formatFigure(a)} µs against ${formatFigure(b)} µs`,
      });
    }
  } finally {
    collector.stop();
    rmSync(directory, { recursive: true });
  }
  return results;
};

if (import.meta.main) await runSuite(tracing);
