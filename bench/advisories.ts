/**
 * Importing advisories over REST, and listing them by each filter: `node bench/advisories.ts [count]`. With
 * WHARF_DATABASE_URL set to an empty PostgreSQL database, only how fast that takes them in.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toJsonString } from '@bufbuild/protobuf';
import { AdvisorySchema } from '../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { mintOwnerToken, readOwner } from '../src/identity/owner/owner-key.ts';
import { spawnServer } from '../test/support/process.ts';
import { advisoryRecord } from './advisory-records.ts';
import { cpuSeconds } from './lib/cpu.ts';
import { type Result, runAlone, type Suite, short } from './lib/result.ts';
import { interleaved } from './lib/rounds.ts';

const SMALL = 2_000;
const BIG = Number(process.argv[2] ?? 200_000);
const BATCH = 1_000;
/** So many batches are on their way at a time: the next is there when the server has done with one. */
const AHEAD = 2;
const ROUNDS = 7;
const REQUESTS = 15;

/** Each filter by itself, with values that many or few advisories have. */
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
  'event_reviewers=nobody',
  'event_types=EVENT_TYPE_FILTER_FIXED',
  'latest_event_type=EVENT_TYPE_FILTER_DETECTION',
  'query=component',
  'query=CVE-2024-77',
];

interface Shelf {
  /** Advisories taken in per second. */
  readonly rate: number;
  readonly lastRate: number;
  /** The same by the processor time of the server, which tells more on a busy machine. */
  readonly cpuRate: number;
  /** Milliseconds that a page takes. */
  page(filter: string): Promise<number>;
  remove(): Promise<void>;
}

/** A server in a process of its own that has taken in `count` advisories. */
async function shelf(count: number): Promise<Shelf> {
  const dataDir = mkdtempSync(join(tmpdir(), 'wharf-bench-'));
  const databaseUrl = process.env.WHARF_DATABASE_URL;
  const server = await spawnServer({ dataDir, databaseUrl, remove: async () => {} });
  const { organization = '' } = (await readOwner(dataDir)) ?? {};
  const headers = { authorization: `Bearer ${await mintOwnerToken(dataDir)}`, 'content-type': 'application/json' };
  const place = `${server.url}/wharfinger/v1/imports/${await newGroup(server.url, organization, headers)}/advisories`;

  const send = async (from: number): Promise<void> => {
    const records = Array.from({ length: Math.min(BATCH, count - from) }, (_, i) =>
      toJsonString(AdvisorySchema, advisoryRecord(from + i)),
    );
    const answer = await fetch(place, { method: 'POST', headers, body: `{"advisories":[${records.join()}]}` });
    const outcome = (await answer.json()) as { created?: number };
    if (outcome.created !== records.length) throw new Error(`not imported: ${JSON.stringify(outcome).slice(0, 500)}`);
  };
  const take = async (from: number, to: number): Promise<number> => {
    const started = performance.now();
    let next = from;
    const sender = async (): Promise<void> => {
      while (next < to) {
        const at = next;
        next += BATCH;
        await send(at);
      }
    };
    await Promise.all(Array.from({ length: AHEAD }, sender));
    return ((to - from) * 1000) / (performance.now() - started);
  };

  const pid = server.process.pid ?? 0;
  const startedCpu = cpuSeconds(pid) ?? Number.NaN;
  const started = performance.now();
  const last = Math.floor((count * 0.9) / BATCH) * BATCH;
  await take(0, last);
  const lastRate = await take(last, count);
  const rate = (count * 1000) / (performance.now() - started);
  const cpuRate = count / ((cpuSeconds(pid) ?? Number.NaN) - startedCpu);
  return {
    rate,
    lastRate,
    cpuRate,
    async page(filter) {
      const url = `${server.url}/vulnerabilities/v2/advisories?order_by=update_time%20desc&${filter}`;
      const from = performance.now();
      for (let i = 0; i < REQUESTS; i++) {
        const answer = await fetch(url, { headers });
        if (!answer.ok) throw new Error(`${filter}: ${await answer.text()}`);
        await answer.arrayBuffer();
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
  const answer = await fetch(`${url}/iam/v2/groups/${parent}`, { method: 'POST', headers, body });
  return ((await answer.json()) as { uid: string }).uid;
}

export const advisories: Suite = async (print) => {
  const big = await shelf(BIG);
  const results: Result[] = [
    {
      benchmark: `import of ${BIG} advisories over REST`,
      value: big.rate,
      unit: 'advisories/s',
      bar: { atLeast: process.env.WHARF_DATABASE_URL ? 0 : 3_000 },
      figures: `${short(big.lastRate)}/s for the last tenth, ${short(big.cpuRate)} per second of processor time`,
    },
  ];
  print(`${BIG} imported`);
  try {
    if (!process.env.WHARF_DATABASE_URL) results.push(...(await compare(big)));
  } finally {
    await big.remove();
  }
  return results;
};

async function compare(big: Shelf): Promise<Result[]> {
  const small = await shelf(SMALL);
  const results: Result[] = [
    { benchmark: `import of ${SMALL} advisories over REST`, value: small.rate, unit: 'advisories/s' },
  ];
  try {
    for (const filter of FILTERS) {
      await small.page(filter);
      await big.page(filter);
      const { ratio, a, b } = await interleaved(
        ROUNDS,
        () => big.page(filter),
        () => small.page(filter),
      );
      results.push({
        benchmark: `list by ${filter || 'nothing'}, newest first, of ${BIG}`,
        baseline: `that of ${SMALL}`,
        value: ratio,
        unit: 'times the time',
        bar: { atMost: 2 },
        figures: `${short(a)} ms against ${short(b)} ms`,
      });
    }
  } finally {
    await small.remove();
  }
  return results;
}

if (import.meta.main) await runAlone(advisories);
