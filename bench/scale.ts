/** List requests in a large organization compared with a small one, on SQLite or on PostgreSQL. */
import { type Dataset, ensureDataset } from './data.ts';
import { type BenchmarkResult, formatFigure, median, type Print, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { LARGE, SMALL } from './lib/sizes.ts';
import { listPath } from './rest.ts';

const ROUNDS = 60;
const WARM_UP_ROUNDS = 5;

/** Sends a request and returns the milliseconds until the response is complete. */
async function time({ url, headers }: BenchServer, path: string): Promise<number> {
  const started = performance.now();
  const response = await fetch(`${url}${path}`, { headers });
  const text = await response.text();
  const ms = performance.now() - started;
  if (!response.ok) throw new Error(`${path} returned ${response.status}: ${text}`);
  return ms;
}

/** The path of a page in the middle of the list. Its page token comes from a request that skips half of the list. */
async function middlePagePath(server: BenchServer, data: Dataset): Promise<string> {
  const response = await fetch(`${server.url}${listPath(data)}&skip=${Math.floor(data.repos / 2)}`, {
    headers: server.headers,
  });
  const { nextPageToken } = (await response.json()) as { nextPageToken: string };
  return `${listPath(data)}&page_token=${encodeURIComponent(nextPageToken)}`;
}

/** Measures both sides of each case alternately, and compares their median times after a warm-up. */
export async function compareTimes(
  cases: readonly { readonly name: string; readonly sides: readonly [() => Promise<number>, () => Promise<number>] }[],
  rounds = ROUNDS,
): Promise<{ readonly name: string; readonly ratio: number; readonly a: number; readonly b: number }[]> {
  const results = [];
  for (const { name, sides } of cases) {
    const times: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) for (const at of [0, 1] as const) times[at].push(await sides[at]());
    const [a, b] = times.map((values) => median(values.slice(WARM_UP_ROUNDS)));
    results.push({ name, ratio: (a ?? 0) / (b ?? 1), a: a ?? 0, b: b ?? 0 });
  }
  return results;
}

export async function measureScale(
  print: Print,
  suffix: string,
  databaseOf: (data: Dataset) => Promise<string | undefined>,
): Promise<BenchmarkResult[]> {
  const [large, small] = [await ensureDataset(LARGE, print), await ensureDataset(SMALL, print)];
  const servers = await Promise.all(
    [large, small].map(async (data) => startBenchServer(data, { databaseUrl: await databaseOf(data) })),
  );
  const [largeServer, smallServer] = servers as [BenchServer, BenchServer];
  try {
    const path = (data: Dataset, filter: string) => `${listPath(data)}${filter}`;
    const nameFilter = (data: Dataset) => `&name=${data.samples[7]?.name}`;
    const [middleOfLarge, middleOfSmall] = [
      await middlePagePath(largeServer, large),
      await middlePagePath(smallServer, small),
    ];
    const comparisons = await compareTimes([
      {
        name: 'first page',
        sides: [() => time(largeServer, path(large, '')), () => time(smallServer, path(small, ''))],
      },
      {
        name: 'page in the middle by token',
        sides: [() => time(largeServer, middleOfLarge), () => time(smallServer, middleOfSmall)],
      },
      {
        name: 'filtered by name',
        sides: [
          () => time(largeServer, path(large, nameFilter(large))),
          () => time(smallServer, path(small, nameFilter(small))),
        ],
      },
    ]);
    const skips: number[] = [];
    for (let round = 0; round < 9; round++) skips.push(await time(largeServer, `${listPath(large)}&skip=900000`));
    return [
      ...comparisons.map(({ name, ratio, a, b }) => ({
        benchmark: `list ${name}, of 1,000,000 repos${suffix}`,
        baseline: 'the same with 1,000 repos',
        value: ratio,
        unit: 'times',
        limit: { atMost: 1.5 },
        figures: `${formatFigure(a)} ms against ${formatFigure(b)} ms`,
      })),
      {
        benchmark: `list with skip 900,000, of 1,000,000 repos${suffix}`,
        value: median(skips),
        unit: 'ms',
        limit: { atMost: 60 },
        figures: `first page ${formatFigure(comparisons[0]?.a ?? 0)} ms`,
      },
    ];
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

export const scale: Suite = (print) => measureScale(print, '', async () => undefined);

if (import.meta.main) await runSuite(scale);
