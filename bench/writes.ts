/** A durable change over REST, with its event, against a bare durable insert of the same bytes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Dataset, dataset } from './data.ts';
import { startChild } from './lib/child.ts';
import { httpLoad, type Target } from './lib/load.ts';
import { runAlone, type Suite, short } from './lib/result.ts';
import { warmAndCompare } from './lib/rounds.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { SMALL } from './lib/sizes.ts';

const IDENTITY = JSON.stringify({
  name: 'bench identity',
  claimMatch: { issuer: 'https://token.actions.example.com', subject: 'repo:acme/app:ref:refs/heads/main' },
});

export const createTarget = (server: BenchServer, { organization }: Dataset): Target => ({
  url: server.url,
  path: `/iam/v2/identities/${organization}`,
  headers: server.headers,
  body: IDENTITY,
});

export const writes: Suite = async (print) => {
  const data = await dataset(SMALL, print);
  const server = await startBenchServer(data);
  const directory = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const bare = startChild('bare-insert.ts');
  try {
    const target = createTarget(server, data);
    const { ratio, a, b } = await warmAndCompare(
      (seconds) => httpLoad(target, { seconds }),
      (seconds) => bare.ask<number>({ path: join(directory, 'bare.db'), bytes: IDENTITY.length, seconds }),
    );
    return [
      {
        benchmark: 'REST create identity (durable, with event row)',
        baseline: 'bare durable SQLite insert',
        value: ratio,
        unit: 'times',
        bar: { atLeast: 0.2 },
        figures: `${short(a)}/s against ${short(b)}/s`,
      },
    ];
  } finally {
    await bare.stop();
    await server.stop();
    rmSync(directory, { recursive: true });
  }
};

if (import.meta.main) await runAlone(writes);
