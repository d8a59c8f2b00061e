/** Two processes on one port against one, for reads and for changes, on both databases. */
import { copied } from './copy.ts';
import { type Dataset, dataset } from './data.ts';
import { cpuSecondsOfAll } from './lib/cpu.ts';
import { httpLoad, type Target } from './lib/load.ts';
import { startPostgres } from './lib/postgres.ts';
import { type Print, type Result, runAlone, type Suite, short } from './lib/result.ts';
import { warmAndCompare } from './lib/rounds.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { SMALL } from './lib/sizes.ts';
import { getPath, listPath } from './rest.ts';
import { createTarget } from './writes.ts';

interface Case {
  readonly what: string;
  readonly bar?: { readonly atLeast: number };
  target(server: BenchServer, data: Dataset): Target;
}

const at = ({ url, headers }: BenchServer, path: string): Target => ({ url, path, headers });

/** The generator needs a part of the two cores too: the dearer a request, the smaller its part. */
const PAGES: Case = {
  what: 'pages of 200',
  bar: { atLeast: 1.4 },
  target: (server, data) => at(server, listPath(data, 200)),
};

/** Nine repos from all over to a page of 50. */
const READS: Case = {
  what: 'nine gets to a page of 50',
  target(server, data) {
    const gets = Array.from({ length: 90 }, (_, i) => getPath(data, i * 11));
    const mixed = gets.flatMap((path, i) => (i % 9 === 8 ? [path, listPath(data)] : [path]));
    return { ...at(server, getPath(data)), morePaths: mixed };
  },
};

const CREATES: Case = { what: 'creates', target: createTarget };

/** For cases that come after another, which has warmed the server already. */
const WARMER_SECONDS = 3;

async function compare(data: Dataset, databaseUrl: string | undefined, cases: readonly Case[]): Promise<Comparison[]> {
  const one = await startBenchServer(data, { databaseUrl });
  const two = await startBenchServer(data, { databaseUrl, workers: 2 });
  const compared: Comparison[] = [];
  try {
    for (const { what, bar, target } of cases) {
      const [a, b] = [loadOn(two, target(two, data)), loadOn(one, target(one, data))];
      const { ratio, ...rates } = await warmAndCompare(a.load, b.load, bar ? undefined : WARMER_SECONDS);
      const cost = `${short(a.cost())} against ${short(b.cost())} microseconds of processor time for each`;
      const figures = `${short(rates.a)}/s against ${short(rates.b)}/s, ${cost}`;
      compared.push({ what, value: ratio, figures, ...(bar && { bar }) });
    }
    return compared;
  } finally {
    await one.stop();
    await two.stop();
  }
}

interface Comparison extends Pick<Result, 'value' | 'figures' | 'bar'> {
  readonly what: string;
}

/** Load on a server, and what a request has cost all of its processes: on a busy machine that tells more than the rate. */
function loadOn({ pid }: BenchServer, target: Target) {
  let [cpu, requests] = [0, 0];
  return {
    async load(seconds: number): Promise<number> {
      const before = cpuSecondsOfAll(pid) ?? Number.NaN;
      const rate = await httpLoad(target, { seconds });
      cpu += (cpuSecondsOfAll(pid) ?? Number.NaN) - before;
      requests += rate * seconds;
      return rate;
    },
    cost: (): number => (cpu / requests) * 1e6,
  };
}

async function onPostgres(data: Dataset, print: Print, cases: readonly Case[]) {
  const server = await startPostgres();
  try {
    return await compare(data, await copied(data, server, print), cases);
  } finally {
    await server.stop();
  }
}

export const workers: Suite = async (print) => {
  const data = await dataset(SMALL, print);
  const results: Result[] = [];
  for (const [where, compared] of [
    ['', await compare(data, undefined, [PAGES, READS, CREATES])],
    [', on PostgreSQL', await onPostgres(data, print, [READS, CREATES])],
  ] as const) {
    for (const { what, ...rest } of compared) {
      const benchmark = `two server processes (wharf serve --workers 2), ${what}${where}`;
      results.push({ benchmark, baseline: 'one', unit: 'times', ...rest });
    }
  }
  return results;
};

if (import.meta.main) await runAlone(workers);
