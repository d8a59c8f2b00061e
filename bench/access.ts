/**
 * How long a permission decision takes for a caller with 20 bindings, among 10,000 groups, 50,000 identities and 100,000
 * bindings: node bench/access.ts [scale]. Microseconds when warm (grants are known), milliseconds when cold (they are read).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../src/access/caller.ts';
import { createGrantCache, type GrantCache } from '../src/access/grant-cache.ts';
import { newUid, ROOT } from '../src/base/uid.ts';
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
import { median, type Result, runAlone, type Suite, short } from './lib/result.ts';

const GROUPS = 10_000;
const IDENTITIES = 50_000;
const BINDINGS = 100_000;
const BATCH = 1000;
const ROUNDS = 20_000;

export interface Decisions {
  /** Microseconds. */
  readonly warm: number;
  /** Milliseconds: the median and the worst. */
  readonly cold: number;
  readonly coldest: number;
}

/** Times decisions in a database of `scale` times the usual size. */
export async function decide(scale: number): Promise<Decisions> {
  const dataDir = await mkdtemp(join(tmpdir(), 'wharf-bench-'));
  const store = await openStore({ dataDir, databaseUrl: process.env.WHARF_DATABASE_URL });
  try {
    return await timeDecisions(store, await fill(store, scale));
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface Filled {
  readonly caller: string;
  readonly places: readonly string[];
}

async function fill(store: Store, scale: number): Promise<Filled> {
  const now = Date.now();
  const places: string[] = [];
  const people: string[] = [];
  const role = (i: number) => builtinRoles[i % builtinRoles.length]?.uid ?? '';
  /** Makes `count` of something, a thousand per transaction. */
  const make = async (count: number, one: (i: number, tx: Transaction) => Promise<unknown>) => {
    for (let made = 0; made < count; made += BATCH) {
      await store.write(async (tx) => {
        for (let i = made; i < Math.min(made + BATCH, count); i++) await one(i, tx);
      });
    }
  };
  await make(GROUPS * scale, async (i, tx) => {
    // A hundred organizations of a hundred groups, three levels deep.
    const parent = i % 100 === 0 ? ROOT : (places[i - (i % 100) + Math.floor((i % 100) / 10)] ?? ROOT);
    const uid = newUid(parent);
    await insert(tx, groups, { message: create(GroupSchema, { name: `group ${i}` }), uid, parent }, now);
    places.push(uid);
  });
  await make(IDENTITIES * scale, async (i, tx) => {
    const uid = newUid(ROOT);
    const message = create(IdentitySchema, { name: `identity ${i}` });
    await insert(tx, identities, { message, uid, parent: ROOT }, now);
    people.push(uid);
  });
  const caller = people[0] ?? '';
  await make(BINDINGS * scale, async (i, tx) => {
    const parent = places[(i * 7919) % places.length] ?? '';
    const identity = i < 20 ? caller : (people[1 + ((i * 104_729) % (people.length - 1))] ?? '');
    await insert(tx, roleBindings, { message: newBinding(identity, role(i)), uid: newUid(parent), parent }, now);
  });
  return { caller, places };
}

async function timeDecisions(store: Store, { caller, places }: Filled): Promise<Decisions> {
  const checks = methodTable(files).filter(({ access }) => access === 'scoped');
  const check = (known: Caller, i: number): boolean =>
    known.can(checks[i % checks.length]?.capabilities ?? [], places[(i * 31) % places.length] ?? '');
  const decision = async (access: GrantCache, i: number) =>
    check(createCaller(caller, undefined, await access.grants(caller)), i);
  const access = createGrantCache(store.reader);
  // As the authenticator keeps it, as long as the version is the same.
  const known = createCaller(caller, undefined, await access.grants(caller));
  const version = await access.accessVersion();
  const warmDecision = async (i: number) => (await access.accessVersion()) === version && check(known, i);
  for (let i = 0; i < ROUNDS; i++) await warmDecision(i);
  const from = performance.now();
  for (let i = 0; i < ROUNDS; i++) await warmDecision(i);
  const warmUs = ((performance.now() - from) / ROUNDS) * 1000;
  const cold: number[] = [];
  for (let i = 0; i < 50; i++) {
    const at = performance.now();
    await decision(createGrantCache(store.reader), i);
    cold.push(performance.now() - at);
  }
  return { warm: warmUs, cold: median(cold), coldest: Math.max(...cold) };
}

/** A tenth of it in a run of all, which takes seconds to fill and decides as fast. */
const decisions = async (scale: number): Promise<Result[]> => {
  const { warm, cold, coldest } = await decide(scale);
  return [
    {
      benchmark: 'permission decision, warm',
      value: warm,
      unit: 'microseconds',
      bar: { atMost: 20 },
      figures: `cold ${short(cold)} ms, at worst ${short(coldest)} ms`,
    },
  ];
};

export const access: Suite = () => decisions(0.1);

if (import.meta.main) await runAlone(() => decisions(Number(process.argv[2] ?? 1)));
