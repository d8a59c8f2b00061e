/** Reads over REST against a bare node:http that sends the same bytes. */
import { type Dataset, dataset } from './data.ts';
import { startChild } from './lib/child.ts';
import { httpLoad, type Target } from './lib/load.ts';
import { type Result, runAlone, type Suite, short } from './lib/result.ts';
import { type Compared, warmAndCompare } from './lib/rounds.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { BIG } from './lib/sizes.ts';

export const getPath = ({ samples }: Dataset, at = 0): string => `/registry/v2/repos/${samples[at]?.uid}`;

export const listPath = ({ organization }: Dataset, pageSize = 50): string =>
  `/registry/v2/repos?uidp.descendants_of=${organization}&page_size=${pageSize}&order_by=name`;

/** A server on node:http that answers everything with what `target` answers now. */
async function bareTwin({ url, path, headers = {} }: Target): Promise<{ url: string; stop(): Promise<void> }> {
  const answer = await fetch(`${url}${path}`, { headers });
  if (!answer.ok) throw new Error(`${path} answers ${answer.status}: ${await answer.text()}`);
  // Node writes these two by itself.
  const { date, connection, 'keep-alive': _, ...sent } = Object.fromEntries(answer.headers);
  const child = startChild('bare-http.ts');
  const port = await child.ask<number>({ headers: sent, body: await answer.text() });
  return { url: `http://127.0.0.1:${port}`, stop: child.stop };
}

/** Requests per second of the server and of its bare twin, in turn. */
async function againstBare(server: BenchServer, path: string): Promise<Compared> {
  const target = { url: server.url, path, headers: server.headers };
  const bare = await bareTwin(target);
  try {
    return await warmAndCompare(
      (seconds) => httpLoad(target, { seconds }),
      (seconds) => httpLoad({ ...target, url: bare.url }, { seconds }),
    );
  } finally {
    await bare.stop();
  }
}

export const rest: Suite = async (print) => {
  const data = await dataset(BIG, print);
  const server = await startBenchServer(data);
  const results: Result[] = [];
  try {
    for (const [benchmark, path, bar] of [
      ['REST get repo by uid', getPath(data), 0.45],
      ['REST list 50 repos by name under an organization, with totalCount', listPath(data), 0.1],
    ] as const) {
      const { ratio, a, b } = await againstBare(server, path);
      const figures = `${short(a)}/s against ${short(b)}/s`;
      results.push({
        benchmark,
        baseline: 'bare node:http',
        value: ratio,
        unit: 'times',
        bar: { atLeast: bar },
        figures,
      });
    }
  } finally {
    await server.stop();
  }
  return results;
};

if (import.meta.main) await runAlone(rest);
