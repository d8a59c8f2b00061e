/** Two processes on one port against one, for reads and for changes, on both databases. */
import { copied } from './copy.ts';
import { type Dataset, dataset } from './data.ts';
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
  target(server: BenchServer, data: Dataset): Target;
}

const at = ({ url, headers }: BenchServer, path: string): Target => ({ url, path, headers });

/** The generator needs a part of the two cores too: the dearer a request, the smaller its part. */
const PAGES: Case = {
  what: 'pages of 200',
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

async function compare(data: Dataset, databaseUrl: string | undefined, cases: readonly Case[]) {
  const one = await startBenchServer(data, { databaseUrl });
  const two = await startBenchServer(data, { databaseUrl, workers: 2 });
  const compared = [];
  try {
    for (const { what, target } of cases) {
      const { ratio, a, b } = await warmAndCompare(
        (seconds) => httpLoad(target(two, data), { seconds }),
        (seconds) => httpLoad(target(one, data), { seconds }),
      );
      compared.push({ what, ratio, figures: `${short(a)}/s against ${short(b)}/s` });
    }
    return compared;
  } finally {
    await one.stop();
    await two.stop();
  }
}

async function onPostgres(data: Dataset, print: Print, cases: readonly Case[]) {
  const server = await startPostgres();
  try {
    return await compare(data, await copied(data, server, print), cases);
  } finally {
    await server.stop();
  }
}

export const workers: Suite = async (print): Promise<Result[]> => {
  const data = await dataset(SMALL, print);
  const [pages, ...others] = await compare(data, undefined, [PAGES, READS, CREATES]);
  if (pages === undefined) return [];
  const baseline = 'one';
  const more = [
    ...others.map((one) => ({ ...one, where: 'SQLite' })),
    ...(await onPostgres(data, print, [READS, CREATES])).map((one) => ({ ...one, where: 'PostgreSQL' })),
  ];
  return [
    {
      ...{ benchmark: 'two server processes (wharf serve --workers 2)', baseline, value: pages.ratio, unit: 'times' },
      ...{ bar: { atLeast: 1.4 }, figures: `${pages.figures}, ${pages.what}` },
    },
    ...more.map(({ what, where, ratio, figures }) => ({
      ...{ benchmark: `two server processes, ${what}, on ${where}`, baseline, value: ratio, unit: 'times', figures },
    })),
  ];
};

if (import.meta.main) await runAlone(workers);
