/**
 * Backs up, verifies and restores a server on SQLite with many resources and large blobs, and measures what a backup
 * costs the clients of the server. Run: node bench/backup.ts [MiB of blobs] [resources]
 */
import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { mintOwnerToken } from '../src/identity/owner/owner-key.ts';
import { type CreatedBackup, startWharf } from '../test/backup/commands.ts';
import { basicAuth, ociClient } from '../test/support/oci-client.ts';
import { spawnServer } from '../test/support/process.ts';
import { DATA_DIRECTORY, ensureDataset } from './data.ts';

const MIB = 1024 * 1024;
const BLOB_BYTES = 16 * MIB;
const blobMebibytes = Number(process.argv[2] ?? 1024);
const resources = Number(process.argv[3] ?? 100_000);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

interface Latencies {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Gets a resource every five milliseconds and creates one every ten, until `until` resolves. */
async function measureLatency(url: string, token: string, organization: string, until: Promise<unknown>) {
  let isDone = false;
  void until.finally(() => {
    isDone = true;
  });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const reads: number[] = [];
  const writes: number[] = [];
  const timed = async (into: number[], path: string, init: RequestInit): Promise<void> => {
    const begun = performance.now();
    const response = await fetch(url + path, { ...init, headers });
    await response.text();
    if (!response.ok) throw new Error(`${path} returned ${response.status}`);
    into.push(performance.now() - begun);
  };
  const running: Promise<void>[] = [];
  for (let turn = 0; !isDone; turn++) {
    running.push(timed(reads, `/iam/v2/groups/${organization}`, {}));
    if (turn % 2 === 0) {
      const body = JSON.stringify({ name: `bench ${process.pid} ${Date.now()} ${turn}` });
      running.push(timed(writes, `/iam/v2/groups/${organization}`, { method: 'POST', body }));
    }
    await delay(5);
  }
  await Promise.all(running);
  return { reads: latenciesOf(reads), writes: latenciesOf(writes) };
}

function latenciesOf(samples: number[]): Latencies {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (fraction: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

const describe = ({ p50, p99, max }: Latencies): string =>
  `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(0)} ms`;

/** Runs a command and prints its duration and rate. */
async function run(name: string, bytes: number, args: readonly string[], dataDir?: string): Promise<string> {
  const begun = performance.now();
  const location = dataDir === undefined ? undefined : { dataDir, databaseUrl: undefined };
  const { code, stdout, stderr } = await startWharf(args, location).done;
  if (code !== 0) throw new Error(`${name} failed: ${stderr}`);
  const seconds = (performance.now() - begun) / 1000;
  print(`${name}: ${seconds.toFixed(1)} s, ${Math.round(bytes / MIB / seconds)} MiB/s`);
  return stdout;
}

const dataset = await ensureDataset({ repos: resources, groups: Math.ceil(resources / 100) }, print);
// Beside the dataset: a temporary directory may be in memory.
const root = mkdtempSync(join(DATA_DIRECTORY, 'backup-'));
try {
  const dataDir = join(root, 'data');
  const target = join(root, 'target');
  cpSync(dataset.dataDir, dataDir, { recursive: true });
  const server = await spawnServer({ dataDir, databaseUrl: undefined, remove: async () => {} });
  try {
    const token = await mintOwnerToken(dataDir);
    const client = ociClient(server.url, basicAuth(token));
    const blobs = Math.ceil((blobMebibytes * MIB) / BLOB_BYTES);
    for (let at = 0; at < blobs; at++) await client.pushBlob('my-org/bench-backup', randomBytes(BLOB_BYTES));
    client.close();
    const databaseBytes = statSync(join(dataDir, 'wharfinger.db')).size;
    const bytes = databaseBytes + blobs * BLOB_BYTES;
    print(`${resources} resources in ${Math.round(databaseBytes / MIB)} MiB, ${blobs * 16} MiB of blobs`);

    const quiet = await measureLatency(server.url, token, dataset.organization, delay(5_000));
    const creating = run('create', bytes, ['backup', 'create', target, '-o', 'json'], dataDir);
    const busy = await measureLatency(server.url, token, dataset.organization, creating);
    const { id } = JSON.parse(await creating) as CreatedBackup;
    print(`reads without a backup: ${describe(quiet.reads)}; during it: ${describe(busy.reads)}`);
    print(`writes without a backup: ${describe(quiet.writes)}; during it: ${describe(busy.writes)}`);
    await run('create again, with no new blobs', databaseBytes, ['backup', 'create', target], dataDir);
    await run('verify', bytes, ['backup', 'verify', target, '--backup', id]);
    const restored = join(root, 'restored');
    await run('restore', bytes, ['backup', 'restore', target, '--backup', id], restored);
  } finally {
    await server.stop();
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
