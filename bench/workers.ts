/** Two server processes on one port compared with one, for reads and for creates, on both databases. */
import { ensureCopied } from './copy-to-postgres.ts';
import { type Dataset, ensureDataset } from './data.ts';
import { warmUpAndCompare } from './lib/compare.ts';
import { cpuSecondsWithChildren } from './lib/cpu.ts';
import { httpLoad, type LoadTarget } from './lib/load.ts';
import { startPostgres } from './lib/postgres.ts';
import { type BenchmarkResult, formatFigure, type Print, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { SMALL } from './lib/sizes.ts';
import { getPath, listPath } from './rest.ts';
import { createTarget } from './writes.ts';

interface WorkersCase {
  readonly name: string;
  readonly limit?: { readonly atLeast: number };
  target(server: BenchServer, data: Dataset): LoadTarget;
}

const targetFor = ({ url, headers }: BenchServer, path: string): LoadTarget => ({ url, path, headers });

/** The load generator needs a part of the two cores too. The more a request costs, the smaller that part is. */
const PAGES: WorkersCase = {
  name: 'pages of 200',
  limit: { atLeast: 1.4 },
  target: (server, data) => targetFor(server, listPath(data, 200)),
};

/** Nine gets of different repos for each page of 50. */
const READS: WorkersCase = {
  name: 'nine gets for each page of 50',
  target(server, data) {
    const gets = Array.from({ length: 90 }, (_, i) => getPath(data, i * 11));
    const mixed = gets.flatMap((path, i) => (i % 9 === 8 ? [path, listPath(data)] : [path]));
    return { ...targetFor(server, getPath(data)), morePaths: mixed };
  },
};

const CREATES: WorkersCase = { name: 'creates', target: createTarget };

/** The warm-up of the cases after the first one, which has already warmed up the server. */
const SHORT_WARM_UP_SECONDS = 3;

async function compare(
  data: Dataset,
  databaseUrl: string | undefined,
  cases: readonly WorkersCase[],
): Promise<WorkerComparison[]> {
  const one = await startBenchServer(data, { databaseUrl });
  const two = await startBenchServer(data, { databaseUrl, workers: 2 });
  const comparisons: WorkerComparison[] = [];
  try {
    for (const { name, limit, target } of cases) {
      const [a, b] = [measuredLoad(two, target(two, data)), measuredLoad(one, target(one, data))];
      const { ratio, ...rates } = await warmUpAndCompare(a.load, b.load, limit ? undefined : SHORT_WARM_UP_SECONDS);
      const rateText = `${formatFigure(rates.a)}/s against ${formatFigure(rates.b)}/s`;
      const costText = `${formatFigure(a.cost())} against ${formatFigure(b.cost())} microseconds`;
      const figures = `${rateText}, ${costText} of processor time per request`;
      comparisons.push({ name, value: ratio, figures, ...(limit && { limit }) });
    }
    return comparisons;
  } finally {
    await one.stop();
    await two.stop();
  }
}

interface WorkerComparison extends Pick<BenchmarkResult, 'value' | 'figures' | 'limit'> {
  readonly name: string;
}

/**
 * Puts load on a server and measures the processor time of a request, summed over all processes of the server. On a
 * busy machine it is more reliable than the rate.
 */
function measuredLoad({ pid }: BenchServer, target: LoadTarget) {
  let [cpu, requests] = [0, 0];
  return {
    async load(seconds: number): Promise<number> {
      const before = cpuSecondsWithChildren(pid) ?? Number.NaN;
      const rate = await httpLoad(target, { seconds });
      cpu += (cpuSecondsWithChildren(pid) ?? Number.NaN) - before;
      requests += rate * seconds;
      return rate;
    },
    cost: (): number => (cpu / requests) * 1e6,
  };
}

async function onPostgres(data: Dataset, print: Print, cases: readonly WorkersCase[]) {
  const server = await startPostgres();
  try {
    return await compare(data, await ensureCopied(data, server, print), cases);
  } finally {
    await server.stop();
  }
}

export const workers: Suite = async (print) => {
  const data = await ensureDataset(SMALL, print);
  const results: BenchmarkResult[] = [];
  for (const [suffix, comparisons] of [
    ['', await compare(data, undefined, [PAGES, READS, CREATES])],
    [', on PostgreSQL', await onPostgres(data, print, [READS, CREATES])],
  ] as const) {
    for (const { name, ...rest } of comparisons) {
      const benchmark = `two server processes (wharf serve --workers 2): ${name}${suffix}`;
      results.push({ benchmark, baseline: 'one server process', unit: 'times', ...rest });
    }
  }
  return results;
};

if (import.meta.main) await runSuite(workers);
