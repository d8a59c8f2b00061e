/**
 * The time of a permission decision for a caller with 20 role bindings: node bench/access.ts [scale]. The database has
 * 10,000 groups, 50,000 identities and 100,000 role bindings. A warm decision uses cached grants and takes
 * microseconds. A cold one reads the grants and takes milliseconds.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../src/access/create-caller.ts';
import { createGrantCache, type GrantCache } from '../src/access/grant-cache.ts';
import { newUid, type ParentUid, ROOT, type Uid } from '../src/base/uid.ts';
import { GroupSchema } from '../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { files, methodTable } from '../src/contract/method-table.ts';
import { groups } from '../src/domains/iam/groups/groups.ts';
import { identities } from '../src/domains/iam/identities/identities.ts';
import { builtinRoles } from '../src/domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../src/domains/iam/roles/role-bindings.ts';
import type { Caller } from '../src/resource/caller.ts';
import { insert } from '../src/resource/write.ts';
import { openStore } from '../src/store/open.ts';
import type { Store, Transaction } from '../src/store/store.ts';
import { type BenchmarkResult, formatFigure, median, runSuite, type Suite } from './lib/result.ts';

const GROUPS = 10_000;
const IDENTITIES = 50_000;
const BINDINGS = 100_000;
const BATCH = 1000;
const ROUNDS = 20_000;

export interface DecisionTimes {
  /** Microseconds. */
  readonly warm: number;
  /** Milliseconds: the median and the maximum. */
  readonly cold: number;
  readonly coldMax: number;
}

/** Measures decisions in a database of `scale` times the default size. */
export async function measureDecisions(scale: number): Promise<DecisionTimes> {
  const dataDir = await mkdtemp(join(tmpdir(), 'wharf-bench-'));
  const store = await openStore({ dataDir, databaseUrl: process.env.WHARF_DATABASE_URL });
  try {
    return await timeDecisions(store, await fill(store, scale));
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface FilledDatabase {
  readonly caller: Uid;
  readonly groupUids: readonly Uid[];
}

async function fill(store: Store, scale: number): Promise<FilledDatabase> {
  const now = Date.now();
  const groupUids: Uid[] = [];
  const identityUids: Uid[] = [];
  const role = (i: number) => builtinRoles[i % builtinRoles.length]?.uid ?? '';
  /** Calls `insertOne` `count` times, in transactions of a thousand. */
  const insertMany = async (count: number, insertOne: (i: number, tx: Transaction) => Promise<unknown>) => {
    for (let start = 0; start < count; start += BATCH) {
      await store.write(async (tx) => {
        for (let i = start; i < Math.min(start + BATCH, count); i++) await insertOne(i, tx);
      });
    }
  };
  await insertMany(GROUPS * scale, async (i, tx) => {
    // A hundred organizations of a hundred groups, on three levels.
    const parent: ParentUid = i % 100 === 0 ? ROOT : (groupUids[i - (i % 100) + Math.floor((i % 100) / 10)] ?? ROOT);
    const uid = newUid(parent);
    await insert(tx, groups, { message: create(GroupSchema, { name: `group ${i}` }), uid, parent }, now);
    groupUids.push(uid);
  });
  await insertMany(IDENTITIES * scale, async (i, tx) => {
    const uid = newUid(ROOT);
    const message = create(IdentitySchema, { name: `identity ${i}` });
    await insert(tx, identities, { message, uid, parent: ROOT }, now);
    identityUids.push(uid);
  });
  const caller = identityUids[0] ?? newUid(ROOT);
  await insertMany(BINDINGS * scale, async (i, tx) => {
    const parent: ParentUid = groupUids[(i * 7919) % groupUids.length] ?? ROOT;
    const identity = i < 20 ? caller : (identityUids[1 + ((i * 104_729) % (identityUids.length - 1))] ?? '');
    await insert(tx, roleBindings, { message: newBinding(identity, role(i)), uid: newUid(parent), parent }, now);
  });
  return { caller, groupUids };
}

async function timeDecisions(store: Store, { caller, groupUids }: FilledDatabase): Promise<DecisionTimes> {
  const checks = methodTable(files).filter(({ access }) => access === 'scoped');
  const decide = (callerWithGrants: Caller, i: number): boolean =>
    callerWithGrants.can(checks[i % checks.length]?.capabilities ?? [], groupUids[(i * 31) % groupUids.length] ?? ROOT);
  const coldDecision = async (grantCache: GrantCache, i: number) =>
    decide(createCaller(caller, undefined, await grantCache.grants(caller)), i);
  const grantCache = createGrantCache(store.reader);
  // The authenticator caches callers as long as the access version does not change.
  const cachedCaller = createCaller(caller, undefined, await grantCache.grants(caller));
  const version = await grantCache.accessVersion();
  const warmDecision = async (i: number) => (await grantCache.accessVersion()) === version && decide(cachedCaller, i);
  for (let i = 0; i < ROUNDS; i++) await warmDecision(i);
  const from = performance.now();
  for (let i = 0; i < ROUNDS; i++) await warmDecision(i);
  const warmUs = ((performance.now() - from) / ROUNDS) * 1000;
  const cold: number[] = [];
  for (let i = 0; i < 50; i++) {
    const at = performance.now();
    await coldDecision(createGrantCache(store.reader), i);
    cold.push(performance.now() - at);
  }
  return { warm: warmUs, cold: median(cold), coldMax: Math.max(...cold) };
}

const benchmarkDecisions = async (scale: number): Promise<BenchmarkResult[]> => {
  const { warm, cold, coldMax } = await measureDecisions(scale);
  return [
    {
      benchmark: 'permission decision, warm',
      value: warm,
      unit: 'microseconds',
      limit: { atMost: 20 },
      figures: `cold ${formatFigure(cold)} ms, at most ${formatFigure(coldMax)} ms`,
    },
  ];
};

/** Uses a tenth of the default size, which takes seconds to fill. Decisions take the same time. */
export const access: Suite = () => benchmarkDecisions(0.1);

if (import.meta.main) await runSuite(() => benchmarkDecisions(Number(process.argv[2] ?? 1)));
