/** The same benchmarks on PostgreSQL, against the one statement that each cannot do without, sent by pg alone. */
import { copied } from './copy.ts';
import { type Dataset, dataset } from './data.ts';
import { startChild } from './lib/child.ts';
import { httpLoad, type Target } from './lib/load.ts';
import { administer, startPostgres } from './lib/postgres.ts';
import { type Print, type Result, runAlone, type Suite, short } from './lib/result.ts';
import { warmAndCompare } from './lib/rounds.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { BIG } from './lib/sizes.ts';
import { getPath, listPath } from './rest.ts';
import { measureScale } from './scale.ts';
import { createTarget } from './writes.ts';

const AT_ONCE = 32;

const GET = 'SELECT body FROM resource WHERE kind = $1 AND uid = $2';
const LIST = `SELECT p.key, p.uid, r.body
  FROM (SELECT key, uid FROM entry WHERE list = $1 AND sort = $2 ORDER BY key, uid LIMIT $3) AS p
  JOIN resource r ON r.kind = $4 AND r.uid = p.uid ORDER BY p.key, p.uid`;
const INSERT = 'INSERT INTO bare (key, value) VALUES ($1, $2)';

interface Case {
  readonly benchmark: string;
  readonly target: Target;
  readonly text: string;
  readonly values: readonly (string | number | Uint8Array)[];
}

async function casesOf(server: BenchServer, data: Dataset, url: string): Promise<Case[]> {
  const [, found] = await administer(
    url,
    'CREATE TABLE IF NOT EXISTS bare (key text PRIMARY KEY, value bytea)',
    `SELECT id FROM list WHERE scope = 'd:${data.organization}' AND kind = 'repo' AND facet = ''`,
  );
  const list = Number(found?.rows[0]?.id);
  const at = (path: string): Target => ({ url: server.url, path, headers: server.headers });
  const create = createTarget(server, data);
  return [
    {
      benchmark: 'REST get repo by uid',
      target: at(getPath(data)),
      text: GET,
      values: ['repo', data.samples[0]?.uid ?? ''],
    },
    {
      benchmark: 'REST list 50 repos by name',
      target: at(listPath(data)),
      text: LIST,
      values: [list, 'name', 51, 'repo'],
    },
    {
      benchmark: 'REST create identity',
      target: create,
      text: INSERT,
      values: ['$new', Buffer.alloc(create.body?.length ?? 0, 7)],
    },
  ];
}

async function measure({ benchmark, target, text, values }: Case, url: string): Promise<Result> {
  const bare = startChild('bare-pg.ts');
  const statement = { url, text, values: [values], atOnce: AT_ONCE };
  try {
    const { ratio, a, b } = await warmAndCompare(
      (seconds) => httpLoad(target, { seconds, connections: AT_ONCE }),
      (seconds) => bare.ask<number>({ ...statement, seconds }),
    );
    return {
      benchmark: `${benchmark}, on PostgreSQL`,
      baseline: 'the single statement by pg',
      value: ratio,
      unit: 'times',
      bar: { atLeast: 0.5 },
      figures: `${short(a)}/s against ${short(b)}/s`,
    };
  } finally {
    await bare.stop();
  }
}

async function throughput(data: Dataset, url: string): Promise<Result[]> {
  const server = await startBenchServer(data, { databaseUrl: url });
  try {
    const results: Result[] = [];
    for (const one of await casesOf(server, data, url)) results.push(await measure(one, url));
    return results;
  } finally {
    await server.stop();
  }
}

export const postgres: Suite = async (print: Print) => {
  const server = await startPostgres();
  try {
    const big = await dataset(BIG, print);
    return [
      ...(await throughput(big, await copied(big, server, print))),
      ...(await measureScale(print, ', on PostgreSQL', (data) => copied(data, server, print))),
    ];
  } finally {
    await server.stop();
  }
};

if (import.meta.main) await runAlone(postgres);
