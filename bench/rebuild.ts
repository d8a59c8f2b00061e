/**
 * Measures the rebuild of a listing index: the declaration of repos gets one order and one facet more, and a server builds
 * them while clients get and create repos. Prints how many repos it indexes per second, and what the clients pay.
 *
 * node bench/rebuild.ts [repos] [groups]
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { mintOwnerToken } from '../src/identity/owner/owner-key.ts';
import { findProgress } from '../src/resource/index/build-progress.ts';
import { inspectDatabase } from '../src/store/inspect.ts';
import { findListingIndex } from '../src/store/listing-indexes.ts';
import type { Reader } from '../src/store/store.ts';
import { pollUntil } from '../test/support/poll-until.ts';
import { spawnServer } from '../test/support/process.ts';
import { ensureCopied } from './copy-to-postgres.ts';
import { DATA_DIRECTORY, type Dataset, ensureDataset } from './data.ts';
import { runStatements, startPostgres } from './lib/postgres.ts';

const PROGRAM = join(import.meta.dirname, 'lib/rebuild.program.ts');
/** How long the clients are measured without a rebuild. */
const IDLE_SECONDS = 5;
/** Between two requests of a client, so that the clients do not take all of the processor. */
const PAUSE_MS = 5;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

interface Location {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
}

async function measure(database: string, data: Dataset, { dataDir, databaseUrl }: Location): Promise<void> {
  const inspected = await inspectDatabase({ dataDir, databaseUrl });
  const server = await spawnServer({ dataDir, databaseUrl, remove: async () => {} }, {}, [], PROGRAM, []);
  try {
    const token = await mintOwnerToken(dataDir);
    const clients = startClients(server.url, token, data);
    await isComplete(inspected.reader);
    const during = clients.take();
    const readLog = async () => server.log.map((line) => JSON.parse(line) as LogLine).findLast(isBuildEnd);
    const built = await pollUntil(readLog, (line) => line !== undefined);
    await delay(IDLE_SECONDS * 1000);
    const after = clients.take();
    await clients.stop();
    print(`${database}: ${built?.resources} repos in ${built?.seconds} s, ${built?.perSecond} repos/s`);
    for (const name of ['get', 'create'] as const) {
      print(`  ${name} during the rebuild: ${percentiles(during[name])}; without: ${percentiles(after[name])}`);
    }
  } finally {
    await server.stop();
    await inspected.close();
  }
}

interface LogLine {
  readonly message: string;
  readonly kind?: string;
  readonly resources?: number;
  readonly seconds?: number;
  readonly perSecond?: number;
}
const isBuildEnd = ({ message, kind }: LogLine): boolean => message === 'built a listing index' && kind === 'repo';

async function isComplete(db: Reader): Promise<void> {
  for (let printed = performance.now(); ; await delay(50)) {
    const index = await findListingIndex(db, 'repo');
    if (index && index.generation > 0 && index.phase === 'complete') return;
    if (performance.now() - printed < 10_000) continue;
    printed = performance.now();
    const { done = 0, total = 0 } = (await findProgress(db, 'repo')) ?? {};
    print(`  ${done} of ${total} repos`);
  }
}

type Latencies = Record<'get' | 'create', number[]>;

/** One client gets repos and one creates repos, each one request after the other. */
function startClients(url: string, token: string, { samples, team }: Dataset) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  let isOver = false;
  let latencies: Latencies = { get: [], create: [] };
  const repeat = async (name: 'get' | 'create', call: (turn: number) => Promise<Response>): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const started = performance.now();
      const response = await call(turn);
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${name} failed with ${response.status}`);
      latencies[name].push(performance.now() - started);
      await delay(PAUSE_MS);
    }
  };
  const repos = `${url}/registry/v2/repos`;
  const running = Promise.all([
    repeat('get', (turn) => fetch(`${repos}/${samples[turn % samples.length]?.uid}`, { headers })),
    repeat('create', (turn) => {
      const body = JSON.stringify({ name: `bench-${turn}-${Date.now()}`, description: 'created meanwhile' });
      return fetch(`${repos}/${team}`, { method: 'POST', headers, body });
    }),
  ]);
  return {
    take(): Latencies {
      const taken = latencies;
      latencies = { get: [], create: [] };
      return taken;
    },
    async stop(): Promise<void> {
      isOver = true;
      await running;
    },
  };
}

function percentiles(latencies: readonly number[]): string {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (part: number): string => (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(1);
  return `${at(0.5)} ms, 99 % within ${at(0.99)} ms, all within ${at(1)} ms (${sorted.length} requests)`;
}

const [repos = 1_000_000, groups = 1_000] = process.argv.slice(2).map(Number);
const data = await ensureDataset({ repos, groups }, print);
const dataDir = join(DATA_DIRECTORY, 'rebuild');

// A copy, because the rebuild changes it.
rmSync(dataDir, { recursive: true, force: true });
cpSync(data.dataDir, dataDir, { recursive: true });
await measure('SQLite', data, { dataDir, databaseUrl: undefined });

const postgres = await startPostgres();
try {
  const url = new URL(await ensureCopied(data, postgres, print));
  const source = decodeURIComponent(url.pathname.slice(1));
  const admin = postgres.url('postgres');
  await runStatements(
    admin,
    'DROP DATABASE IF EXISTS rebuild WITH (FORCE)',
    `CREATE DATABASE rebuild TEMPLATE ${source}`,
  );
  await measure('PostgreSQL', data, { dataDir, databaseUrl: postgres.url('rebuild') });
  await runStatements(admin, 'DROP DATABASE rebuild WITH (FORCE)');
} finally {
  await postgres.stop();
  rmSync(dataDir, { recursive: true, force: true });
}
