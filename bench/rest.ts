/** Reads over REST, compared with a plain node:http server that sends the same bytes. */
import { type Dataset, ensureDataset } from './data.ts';
import { startChildProgram } from './lib/child-program.ts';
import { type Comparison, warmUpAndCompare } from './lib/compare.ts';
import { httpLoad, type LoadTarget } from './lib/load.ts';
import { type BenchmarkResult, formatFigure, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { LARGE } from './lib/sizes.ts';

export const getPath = ({ samples }: Dataset, at = 0): string => `/registry/v2/repos/${samples[at]?.uid}`;

export const listPath = ({ organization }: Dataset, pageSize = 50): string =>
  `/registry/v2/repos?uidp.descendants_of=${organization}&page_size=${pageSize}&order_by=name`;

/** Starts a node:http server that sends the current response of `target` for every request. */
async function startBaseline({ url, path, headers = {} }: LoadTarget): Promise<{ url: string; stop(): Promise<void> }> {
  const response = await fetch(`${url}${path}`, { headers });
  if (!response.ok) throw new Error(`${path} returned ${response.status}: ${await response.text()}`);
  // Node writes these headers itself.
  const { date, connection, 'keep-alive': _, ...sent } = Object.fromEntries(response.headers);
  const child = startChildProgram('baseline-http.ts');
  const port = await child.request<number>({ headers: sent, body: await response.text() });
  return { url: `http://127.0.0.1:${port}`, stop: child.stop };
}

/** Compares requests per second of the server and of the baseline. */
async function compareWithBaseline(server: BenchServer, path: string): Promise<Comparison> {
  const target = { url: server.url, path, headers: server.headers };
  const baseline = await startBaseline(target);
  try {
    return await warmUpAndCompare(
      (seconds) => httpLoad(target, { seconds }),
      (seconds) => httpLoad({ ...target, url: baseline.url }, { seconds }),
    );
  } finally {
    await baseline.stop();
  }
}

export const rest: Suite = async (print) => {
  const data = await ensureDataset(LARGE, print);
  const server = await startBenchServer(data);
  const results: BenchmarkResult[] = [];
  try {
    for (const [benchmark, path, atLeast] of [
      ['REST get repo by uid', getPath(data), 0.45],
      ['REST list 50 repos of an organization by name, with totalCount', listPath(data), 0.1],
    ] as const) {
      const { ratio, a, b } = await compareWithBaseline(server, path);
      const figures = `${formatFigure(a)}/s against ${formatFigure(b)}/s`;
      results.push({
        benchmark,
        baseline: 'plain node:http server',
        value: ratio,
        unit: 'times',
        limit: { atLeast },
        figures,
      });
    }
  } finally {
    await server.stop();
  }
  return results;
};

if (import.meta.main) await runSuite(rest);
