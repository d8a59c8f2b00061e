/**
 * Imports advisories over REST and lists them by each filter: `node bench/advisories.ts [count]`.
 * If WHARF_DATABASE_URL is the URL of an empty PostgreSQL database, it measures only the import.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toJsonString } from '@bufbuild/protobuf';
import { AdvisorySchema } from '../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { mintOwnerToken, readOwner } from '../src/identity/owner/owner-key.ts';
import { spawnServer } from '../test/support/process.ts';
import { advisoryRecord } from './advisory-records.ts';
import { compareInTurn } from './lib/compare.ts';
import { cpuSeconds } from './lib/cpu.ts';
import { type BenchmarkResult, formatFigure, runSuite, type Suite } from './lib/result.ts';

const SMALL_COUNT = 2_000;
const LARGE_COUNT = Number(process.argv[2] ?? 200_000);
const BATCH = 1_000;
/** Two batches are sent concurrently, so that the server never waits for the next one. */
const CONCURRENT_BATCHES = 2;
const ROUNDS = 7;
const REQUESTS = 15;

/** Each filter alone, some with frequent and some with rare values. */
const FILTERS = [
  '',
  'advisory_ids=CGA-2222-2222-2222',
  'artifact_names=package-3',
  'artifact_types=apk',
  'artifact_architectures=x86_64',
  'component_names=component-21',
  'component_types=python',
  'component_locations=/usr/bin/tool-3',
  'aliases=CVE-2024-77',
  'origin=package-3',
  'event_review_states=REVIEW_STATE_APPROVED',
  'event_authors=analyst-7',
  'exclude_event_authors=analyst-7',
  'event_reviewers=unknown',
  'event_types=EVENT_TYPE_FILTER_FIXED',
  'latest_event_type=EVENT_TYPE_FILTER_DETECTION',
  'query=component',
  'query=CVE-2024-77',
];

/** A server with imported advisories. */
interface ImportedServer {
  /** Imported advisories per second. */
  readonly rate: number;
  /** The same for the last tenth of them. */
  readonly lastRate: number;
  /** Imported advisories per second of processor time, which is more reliable on a busy machine. */
  readonly cpuRate: number;
  /** Returns the milliseconds of one list request. */
  timePage(filter: string): Promise<number>;
  remove(): Promise<void>;
}

/** Starts a server in a separate process and imports `count` advisories. */
async function startWithAdvisories(count: number): Promise<ImportedServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const databaseUrl = process.env.WHARF_DATABASE_URL;
  const server = await spawnServer({ dataDir, databaseUrl, remove: async () => {} });
  const { organization = '' } = (await readOwner(dataDir)) ?? {};
  const headers = { authorization: `Bearer ${await mintOwnerToken(dataDir)}`, 'content-type': 'application/json' };
  const group = await newGroup(server.url, organization, headers);
  const importUrl = `${server.url}/wharfinger/v1/imports/${group}/advisories`;

  const send = async (from: number): Promise<void> => {
    const records = Array.from({ length: Math.min(BATCH, count - from) }, (_, i) =>
      toJsonString(AdvisorySchema, advisoryRecord(from + i)),
    );
    const response = await fetch(importUrl, { method: 'POST', headers, body: `{"advisories":[${records.join()}]}` });
    const outcome = (await response.json()) as { created?: number };
    if (outcome.created !== records.length)
      throw new Error(`the import failed: ${JSON.stringify(outcome).slice(0, 500)}`);
  };
  const importRange = async (from: number, to: number): Promise<number> => {
    const started = performance.now();
    let next = from;
    const sender = async (): Promise<void> => {
      while (next < to) {
        const at = next;
        next += BATCH;
        await send(at);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_BATCHES }, sender));
    return ((to - from) * 1000) / (performance.now() - started);
  };

  const pid = server.process.pid ?? 0;
  const startedCpu = cpuSeconds(pid) ?? Number.NaN;
  const started = performance.now();
  const lastTenth = Math.floor((count * 0.9) / BATCH) * BATCH;
  await importRange(0, lastTenth);
  const lastRate = await importRange(lastTenth, count);
  const rate = (count * 1000) / (performance.now() - started);
  const cpuRate = count / ((cpuSeconds(pid) ?? Number.NaN) - startedCpu);
  return {
    rate,
    lastRate,
    cpuRate,
    async timePage(filter) {
      const url = `${server.url}/vulnerabilities/v2/advisories?order_by=update_time%20desc&${filter}`;
      const from = performance.now();
      for (let i = 0; i < REQUESTS; i++) {
        const response = await fetch(url, { headers });
        if (!response.ok) throw new Error(`${filter}: ${await response.text()}`);
        await response.arrayBuffer();
      }
      return (performance.now() - from) / REQUESTS;
    },
    async remove() {
      await server.kill();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function newGroup(url: string, parent: string, headers: Record<string, string>): Promise<string> {
  const body = JSON.stringify({ name: 'advisories' });
  const response = await fetch(`${url}/iam/v2/groups/${parent}`, { method: 'POST', headers, body });
  return ((await response.json()) as { uid: string }).uid;
}

export const advisories: Suite = async (print) => {
  const large = await startWithAdvisories(LARGE_COUNT);
  const results: BenchmarkResult[] = [
    {
      benchmark: `import of ${LARGE_COUNT} advisories over REST`,
      value: large.rate,
      unit: 'advisories/s',
      limit: { atLeast: process.env.WHARF_DATABASE_URL ? 0 : 3_000 },
      figures: [
        `${formatFigure(large.lastRate)}/s for the last tenth`,
        `${formatFigure(large.cpuRate)} per second of processor time`,
      ].join(', '),
    },
  ];
  print(`${LARGE_COUNT} imported`);
  try {
    if (!process.env.WHARF_DATABASE_URL) results.push(...(await compare(large)));
  } finally {
    await large.remove();
  }
  return results;
};

async function compare(large: ImportedServer): Promise<BenchmarkResult[]> {
  const small = await startWithAdvisories(SMALL_COUNT);
  const results: BenchmarkResult[] = [
    { benchmark: `import of ${SMALL_COUNT} advisories over REST`, value: small.rate, unit: 'advisories/s' },
  ];
  try {
    for (const filter of FILTERS) {
      await small.timePage(filter);
      await large.timePage(filter);
      const { ratio, a, b } = await compareInTurn(
        ROUNDS,
        () => large.timePage(filter),
        () => small.timePage(filter),
      );
      results.push({
        benchmark: `list with ${filter || 'no filter'}, newest first, of ${LARGE_COUNT} advisories`,
        baseline: `the same with ${SMALL_COUNT} advisories`,
        value: ratio,
        unit: 'times the time',
        limit: { atMost: 2 },
        figures: `${formatFigure(a)} ms against ${formatFigure(b)} ms`,
      });
    }
  } finally {
    await small.remove();
  }
  return results;
}

if (import.meta.main) await runSuite(advisories);
