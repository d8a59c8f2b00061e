/** Requests on PostgreSQL, each compared with the one statement that it needs at least, run by the driver pg alone. */
import { ensureCopied } from './copy-to-postgres.ts';
import { type Dataset, ensureDataset } from './data.ts';
import { startChildProgram } from './lib/child-program.ts';
import { warmUpAndCompare } from './lib/compare.ts';
import { httpLoad, type LoadTarget } from './lib/load.ts';
import { runStatements, startPostgres } from './lib/postgres.ts';
import { type BenchmarkResult, formatFigure, type Print, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { LARGE } from './lib/sizes.ts';
import { getPath, listPath } from './rest.ts';
import { measureScale } from './scale.ts';
import { createTarget } from './writes.ts';

const CONCURRENCY = 32;

const GET = 'SELECT body FROM resource WHERE kind = $1 AND uid = $2';
const LIST = `SELECT p.key, p.uid, r.body
  FROM (SELECT key, uid FROM entry WHERE list = $1 AND sort = $2 ORDER BY key, uid LIMIT $3) AS p
  JOIN resource r ON r.kind = $4 AND r.uid = p.uid ORDER BY p.key, p.uid`;
const INSERT = 'INSERT INTO baseline (key, value) VALUES ($1, $2)';

interface PostgresCase {
  readonly benchmark: string;
  readonly target: LoadTarget;
  readonly text: string;
  readonly values: readonly (string | number | Uint8Array)[];
}

async function casesOf(server: BenchServer, data: Dataset, url: string): Promise<PostgresCase[]> {
  const [, lists] = await runStatements(
    url,
    'CREATE TABLE IF NOT EXISTS baseline (key text PRIMARY KEY, value bytea)',
    `SELECT id FROM list WHERE scope = 'd:${data.organization}' AND kind = 'repo' AND facet = ''`,
  );
  const listId = Number(lists?.rows[0]?.id);
  const targetAt = (path: string): LoadTarget => ({ url: server.url, path, headers: server.headers });
  const create = createTarget(server, data);
  return [
    {
      benchmark: 'REST get repo by uid',
      target: targetAt(getPath(data)),
      text: GET,
      values: ['repo', data.samples[0]?.uid ?? ''],
    },
    {
      benchmark: 'REST list 50 repos by name',
      target: targetAt(listPath(data)),
      text: LIST,
      values: [listId, 'name', 51, 'repo'],
    },
    {
      benchmark: 'REST create identity',
      target: create,
      text: INSERT,
      values: ['$new', Buffer.alloc(create.body?.length ?? 0, 7)],
    },
  ];
}

async function measure({ benchmark, target, text, values }: PostgresCase, url: string): Promise<BenchmarkResult> {
  const baseline = startChildProgram('baseline-pg-statement.ts');
  const statement = { url, text, values: [values], concurrency: CONCURRENCY };
  try {
    const { ratio, a, b } = await warmUpAndCompare(
      (seconds) => httpLoad(target, { seconds, connections: CONCURRENCY }),
      (seconds) => baseline.request<number>({ ...statement, seconds }),
    );
    return {
      benchmark: `${benchmark}, on PostgreSQL`,
      baseline: 'one statement by pg',
      value: ratio,
      unit: 'times',
      limit: { atLeast: 0.5 },
      figures: `${formatFigure(a)}/s against ${formatFigure(b)}/s`,
    };
  } finally {
    await baseline.stop();
  }
}

async function measureThroughput(data: Dataset, url: string): Promise<BenchmarkResult[]> {
  const server = await startBenchServer(data, { databaseUrl: url });
  try {
    const results: BenchmarkResult[] = [];
    for (const each of await casesOf(server, data, url)) results.push(await measure(each, url));
    return results;
  } finally {
    await server.stop();
  }
}

export const postgres: Suite = async (print: Print) => {
  const server = await startPostgres();
  try {
    const large = await ensureDataset(LARGE, print);
    return [
      ...(await measureThroughput(large, await ensureCopied(large, server, print))),
      ...(await measureScale(print, ', on PostgreSQL', (data) => ensureCopied(data, server, print))),
    ];
  } finally {
    await server.stop();
  }
};

if (import.meta.main) await runSuite(postgres);
