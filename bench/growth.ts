/** How the cost of a decision and of a page grows with repos, groups, bindings and callers; on SQLite, without the wires. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../src/access/caller.ts';
import { createGrantCache } from '../src/access/grant-cache.ts';
import { newUid, ROOT } from '../src/base/uid.ts';
import { Capability } from '../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupSchema } from '../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { ListReposRequestSchema, RepoSchema } from '../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Method } from '../src/contract/method.ts';
import { files, methodTable } from '../src/contract/method-table.ts';
import { groups } from '../src/domains/iam/groups/groups.ts';
import { builtinRoles } from '../src/domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../src/domains/iam/roles/role-bindings.ts';
import { repos } from '../src/domains/registry/repos/repos.ts';
import type { Caller } from '../src/resource/caller.ts';
import { createLister, type ListRequest } from '../src/resource/list/list.ts';
import { createPageTokens } from '../src/resource/list/page-token.ts';
import { insertAll } from '../src/resource/write.ts';
import { openStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import { dataset } from './data.ts';
import type { Curve } from './lib/plot.ts';
import { median, type Print } from './lib/result.ts';
import { BIG, MIDDLE, SMALL } from './lib/sizes.ts';

const VIEWER = builtinRoles.find(({ name }) => name === 'viewer')?.uid ?? '';
const LIST = methodTable(files).find(({ id }) => id.endsWith('.ReposService/ListRepos')) as Method;
const NEEDED = [Capability.CAP_REPO_LIST];
const lister = createLister(repos, ListReposRequestSchema, createPageTokens(new Uint8Array(32)));

const BATCHES = 9;

/** Microseconds of processor time that something takes, which others on the machine hardly change: the median of batches. */
async function microseconds(what: (i: number) => Promise<unknown>, times = 50): Promise<number> {
  const taken: number[] = [];
  for (let batch = 0; batch < 2 * BATCHES; batch++) {
    const before = process.cpuUsage();
    for (let i = 0; i < times; i++) await what(batch * times + i);
    const { user, system } = process.cpuUsage(before);
    // The first half is for V8 to compile.
    if (batch >= BATCHES) taken.push((user + system) / times);
  }
  return median(taken);
}

/** The first page by name of what an identity sees. */
async function page(store: Store, identity: string, descendantsOf = ''): Promise<number> {
  const access = createGrantCache(store.reader);
  const request = create(ListReposRequestSchema, { orderBy: 'name', pageSize: 50, uidp: { descendantsOf } });
  // Made once, as the authenticator keeps the caller of a token.
  const caller = createCaller(identity, undefined, await access.grants(identity));
  return microseconds(async () => {
    const ctx = { method: LIST, caller, authorization: undefined, now: Date.now(), db: store.reader };
    await lister(ctx, request as unknown as ListRequest);
  });
}

/** Whether one of some identities may read in one of some places. */
async function decision(store: Store, identities: readonly string[], places: readonly string[]): Promise<number> {
  const access = createGrantCache(store.reader);
  // Kept between requests, as the authenticator does.
  const callers: Caller[] = [];
  for (const identity of identities) callers.push(createCaller(identity, undefined, await access.grants(identity)));
  return microseconds(async (i) => {
    await access.accessVersion();
    callers[i % callers.length]?.can(NEEDED, places[i % places.length] ?? '');
  }, 2_000);
}

/** Spread over the groups that callers are bound to, so that whatever their number is, pages are full. */
const VISIBLE = 1_000;

/** An organization of its own with groups, none inside of another, and callers that are bound to the first of them. */
async function measure(size: { readonly groups: number; readonly bindings: number; readonly callers: number }) {
  const dataDir = await mkdtemp(join(tmpdir(), 'wharf-bench-'));
  const store = await openStore({ dataDir });
  const now = Date.now();
  try {
    const org = newUid(ROOT);
    const places = Array.from({ length: size.groups }, () => newUid(org));
    const callers = Array.from({ length: size.callers }, () => newUid(ROOT));
    await store.write(async (tx) => {
      const named = (uid: string, at: number) => ({
        message: create(GroupSchema, { name: `group ${at}` }),
        uid,
        parent: org,
      });
      await insertAll(tx, groups, [{ ...named(org, 0), parent: ROOT }, ...places.map(named)], now);
      const holders = [...places, ...Array.from({ length: VISIBLE }, (_, at) => places[at % size.bindings] ?? org)];
      const inside = holders.map((parent, at) => ({
        message: create(RepoSchema, { name: `repo-${at}` }),
        uid: newUid(parent),
        parent,
      }));
      await insertAll(tx, repos, inside, now);
      const bound = callers.flatMap((identity) =>
        places.slice(0, size.bindings).map((parent) => ({
          message: newBinding(identity, VIEWER),
          uid: newUid(parent),
          parent,
        })),
      );
      await insertAll(tx, roleBindings, bound, now);
    });
    return { decision: await decision(store, callers, places), page: await page(store, callers[0] ?? '') };
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function byRepos(print: Print): Promise<Curve> {
  const points = [];
  for (const size of [SMALL, MIDDLE, BIG]) {
    const data = await dataset(size, print);
    const store = await openStore({ dataDir: data.dataDir });
    try {
      const places = data.samples.map(({ uid }) => uid);
      const { identity } = data.caller;
      points.push({
        x: size.repos,
        decision: await decision(store, [identity], places),
        page: await page(store, identity, data.organization),
      });
    } finally {
      await store.close();
    }
  }
  return { of: 'repos', points };
}

async function by(what: 'groups' | 'bindings' | 'callers', of: string, sizes: readonly number[]): Promise<Curve> {
  const usual = { groups: 1_000, bindings: 20, callers: 1 };
  const points = [];
  for (const x of sizes) points.push({ x, ...(await measure({ ...usual, [what]: x })) });
  return { of, points };
}

export async function growth(print: Print): Promise<Curve[]> {
  return [
    await byRepos(print),
    await by('groups', 'groups, to 20 of which the caller is bound', [100, 1_000, 10_000]),
    await by('bindings', 'bindings of the caller, none inside of another', [1, 10, 100, 1_000]),
    await by('callers', 'callers', [1, 10, 100, 1_000]),
  ];
}

if (import.meta.main) {
  for (const { of, points } of await growth((line) => void process.stdout.write(`${line}\n`))) {
    for (const { x, decision, page } of points) {
      process.stdout.write(`${x} ${of}: decision ${decision.toFixed(1)} us, page of 50 ${page.toFixed(0)} us\n`);
    }
  }
}
