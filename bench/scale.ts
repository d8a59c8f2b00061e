/** Whether lists cost the same in a large organization as in a small one, on SQLite or on PostgreSQL. */
import { type Dataset, dataset } from './data.ts';
import { median, type Print, type Result, runAlone, type Suite, short } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { BIG, SMALL } from './lib/sizes.ts';
import { listPath } from './rest.ts';

const ROUNDS = 60;

/** Milliseconds from a request to its answer. */
async function time({ url, headers }: BenchServer, path: string): Promise<number> {
  const started = performance.now();
  const answer = await fetch(`${url}${path}`, { headers });
  const text = await answer.text();
  const ms = performance.now() - started;
  if (!answer.ok) throw new Error(`${path} answers ${answer.status}: ${text}`);
  return ms;
}

/** A page far from both ends, as a client gets there: by tokens. The first one skips half of the way. */
async function middleOf(server: BenchServer, data: Dataset): Promise<string> {
  const answer = await fetch(`${server.url}${listPath(data)}&skip=${Math.floor(data.repos / 2)}`, {
    headers: server.headers,
  });
  const { nextPageToken } = (await answer.json()) as { nextPageToken: string };
  return `${listPath(data)}&page_token=${encodeURIComponent(nextPageToken)}`;
}

/** The median time of each path on each server, taken in turn. */
export async function compareTimes(
  cases: readonly { readonly name: string; readonly sides: readonly [() => Promise<number>, () => Promise<number>] }[],
  rounds = ROUNDS,
): Promise<{ readonly name: string; readonly ratio: number; readonly a: number; readonly b: number }[]> {
  const results = [];
  for (const { name, sides } of cases) {
    const times: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) for (const at of [0, 1] as const) times[at].push(await sides[at]());
    const [a, b] = times.map((all) => median(all.slice(5)));
    results.push({ name, ratio: (a ?? 0) / (b ?? 1), a: a ?? 0, b: b ?? 0 });
  }
  return results;
}

export async function measureScale(
  print: Print,
  where: string,
  databaseOf: (data: Dataset) => Promise<string | undefined>,
): Promise<Result[]> {
  const [big, small] = [await dataset(BIG, print), await dataset(SMALL, print)];
  const servers = await Promise.all(
    [big, small].map(async (data) => startBenchServer(data, { databaseUrl: await databaseOf(data) })),
  );
  const [onBig, onSmall] = servers as [BenchServer, BenchServer];
  try {
    const path = (data: Dataset, filter: string) => `${listPath(data)}${filter}`;
    const named = (data: Dataset) => `&name=${data.samples[7]?.name}`;
    const [middleBig, middleSmall] = [await middleOf(onBig, big), await middleOf(onSmall, small)];
    const compared = await compareTimes([
      { name: 'first page', sides: [() => time(onBig, path(big, '')), () => time(onSmall, path(small, ''))] },
      { name: 'page in the middle by token', sides: [() => time(onBig, middleBig), () => time(onSmall, middleSmall)] },
      {
        name: 'filtered by name',
        sides: [() => time(onBig, path(big, named(big))), () => time(onSmall, path(small, named(small)))],
      },
    ]);
    const skips: number[] = [];
    for (let round = 0; round < 9; round++) skips.push(await time(onBig, `${listPath(big)}&skip=900000`));
    return [
      ...compared.map(({ name, ratio, a, b }) => ({
        benchmark: `list ${name}: 1,000,000 repos against 1,000${where}`,
        baseline: 'itself with 1,000',
        value: ratio,
        unit: 'times',
        bar: { atMost: 1.5 },
        figures: `${short(a)} ms against ${short(b)} ms`,
      })),
      {
        benchmark: `skip 900,000 of 1,000,000${where}`,
        value: median(skips),
        unit: 'ms',
        bar: { atMost: 60 },
        figures: `first page ${short(compared[0]?.a ?? 0)} ms`,
      },
    ];
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

export const scale: Suite = (print) => measureScale(print, '', async () => undefined);

if (import.meta.main) await runAlone(scale);
