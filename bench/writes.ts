/** A durable create over REST with its event, compared with a durable SQLite insert of the same bytes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Dataset, ensureDataset } from './data.ts';
import { startChildProgram } from './lib/child-program.ts';
import { warmUpAndCompare } from './lib/compare.ts';
import { httpLoad, type LoadTarget } from './lib/load.ts';
import { formatFigure, runSuite, type Suite } from './lib/result.ts';
import { type BenchServer, startBenchServer } from './lib/server.ts';
import { SMALL } from './lib/sizes.ts';

/** An organization may have a limited number of identities with the same issuer and subject. */
const [IDENTITY = '', ...MORE_IDENTITIES] = Array.from({ length: 5000 }, (_, at) =>
  JSON.stringify({
    name: 'bench identity',
    claimMatch: {
      issuer: 'https://token.actions.example.com',
      subject: `repo:acme/app${1000 + at}:ref:refs/heads/main`,
    },
  }),
);

export const createTarget = (server: BenchServer, { organization }: Dataset): LoadTarget => ({
  url: server.url,
  path: `/iam/v2/identities/${organization}`,
  headers: server.headers,
  body: IDENTITY,
  moreBodies: MORE_IDENTITIES,
});

export const writes: Suite = async (print) => {
  const data = await ensureDataset(SMALL, print);
  const server = await startBenchServer(data);
  const directory = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const baseline = startChildProgram('baseline-sqlite-insert.ts');
  try {
    const target = createTarget(server, data);
    const { ratio, a, b } = await warmUpAndCompare(
      (seconds) => httpLoad(target, { seconds }),
      (seconds) => baseline.request<number>({ path: join(directory, 'baseline.db'), bytes: IDENTITY.length, seconds }),
    );
    return [
      {
        benchmark: 'REST create identity (durable, with event row)',
        baseline: 'durable SQLite insert of one row',
        value: ratio,
        unit: 'times',
        limit: { atLeast: 0.2 },
        figures: `${formatFigure(a)}/s against ${formatFigure(b)}/s`,
      },
    ];
  } finally {
    await baseline.stop();
    await server.stop();
    rmSync(directory, { recursive: true });
  }
};

if (import.meta.main) await runSuite(writes);
