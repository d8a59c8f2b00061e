/**
 * How the cost of a permission decision and of a list page grows with repos, groups, role bindings and callers.
 * Measured on SQLite by calling the functions directly, without a wire.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { createCaller } from '../src/access/create-caller.ts';
import { createGrantCache } from '../src/access/grant-cache.ts';
import { newUid, ROOT, type Uid } from '../src/base/uid.ts';
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
import { ensureDataset } from './data.ts';
import type { GrowthCurve } from './lib/plot.ts';
import { median, type Print } from './lib/result.ts';
import { LARGE, MEDIUM, SMALL } from './lib/sizes.ts';

const VIEWER = builtinRoles.find(({ name }) => name === 'viewer')?.uid ?? '';
const LIST = methodTable(files).find(({ id }) => id.endsWith('.ReposService/ListRepos')) as Method;
const REQUIRED = [Capability.CAP_REPO_LIST];
const lister = createLister(repos, ListReposRequestSchema, createPageTokens(new Uint8Array(32)));

const BATCHES = 9;

/** Returns the processor time of one run in microseconds, as the median of batches. Other load hardly changes it. */
async function cpuPerRun(run: (i: number) => Promise<unknown>, times = 50): Promise<number> {
  const taken: number[] = [];
  for (let batch = 0; batch < 2 * BATCHES; batch++) {
    const before = process.cpuUsage();
    for (let i = 0; i < times; i++) await run(batch * times + i);
    const { user, system } = process.cpuUsage(before);
    // The first half is a warm-up for V8.
    if (batch >= BATCHES) taken.push((user + system) / times);
  }
  return median(taken);
}

/** Returns the cost of the first page of repos by name that an identity can read. */
async function pageCost(store: Store, identity: string, descendantsOf = ''): Promise<number> {
  const grantCache = createGrantCache(store.reader);
  const request = create(ListReposRequestSchema, { orderBy: 'name', pageSize: 50, uidp: { descendantsOf } });
  // Created once, because the authenticator caches the caller of a token.
  const caller = createCaller(identity, undefined, await grantCache.grants(identity));
  return cpuPerRun(async () => {
    const ctx = { method: LIST, caller, authorization: undefined, now: Date.now(), db: store.reader };
    await lister(ctx, request as unknown as ListRequest);
  });
}

/** Returns the cost of a decision whether an identity may list the repos of a group. */
async function decisionCost(store: Store, identities: readonly string[], scopes: readonly Uid[]): Promise<number> {
  const grantCache = createGrantCache(store.reader);
  // Created once, because the authenticator caches callers.
  const callers: Caller[] = [];
  for (const identity of identities) callers.push(createCaller(identity, undefined, await grantCache.grants(identity)));
  return cpuPerRun(async (i) => {
    await grantCache.accessVersion();
    callers[i % callers.length]?.can(REQUIRED, scopes[i % scopes.length] ?? ROOT);
  }, 2_000);
}

/** So many repos are spread over the groups with role bindings, so that pages are full for any number of bindings. */
const VISIBLE_REPOS = 1_000;

/** Measures on a new organization: its groups are siblings, and callers have role bindings at the first of them. */
async function measure(size: { readonly groups: number; readonly bindings: number; readonly callers: number }) {
  const dataDir = await mkdtemp(join(tmpdir(), 'wharf-bench-'));
  const store = await openStore({ dataDir });
  const now = Date.now();
  try {
    const org = newUid(ROOT);
    const groupUids = Array.from({ length: size.groups }, () => newUid(org));
    const callers = Array.from({ length: size.callers }, () => newUid(ROOT));
    await store.write(async (tx) => {
      const groupDraft = (uid: Uid, at: number) => ({
        message: create(GroupSchema, { name: `group ${at}` }),
        uid,
        parent: org,
      });
      await insertAll(tx, groups, [{ ...groupDraft(org, 0), parent: ROOT }, ...groupUids.map(groupDraft)], now);
      const repoParents = [
        ...groupUids,
        ...Array.from({ length: VISIBLE_REPOS }, (_, at) => groupUids[at % size.bindings] ?? org),
      ];
      const repoDrafts = repoParents.map((parent, at) => ({
        message: create(RepoSchema, { name: `repo-${at}` }),
        uid: newUid(parent),
        parent,
      }));
      await insertAll(tx, repos, repoDrafts, now);
      const bindingDrafts = callers.flatMap((identity) =>
        groupUids.slice(0, size.bindings).map((parent) => ({
          message: newBinding(identity, VIEWER),
          uid: newUid(parent),
          parent,
        })),
      );
      await insertAll(tx, roleBindings, bindingDrafts, now);
    });
    return { decision: await decisionCost(store, callers, groupUids), page: await pageCost(store, callers[0] ?? '') };
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function curveByRepos(print: Print): Promise<GrowthCurve> {
  const points = [];
  for (const size of [SMALL, MEDIUM, LARGE]) {
    const data = await ensureDataset(size, print);
    const store = await openStore({ dataDir: data.dataDir });
    try {
      const repoUids = data.samples.map(({ uid }) => uid);
      const { identity } = data.caller;
      points.push({
        x: size.repos,
        decision: await decisionCost(store, [identity], repoUids),
        page: await pageCost(store, identity, data.organization),
      });
    } finally {
      await store.close();
    }
  }
  return { of: 'repos', points };
}

async function curveBy(
  dimension: 'groups' | 'bindings' | 'callers',
  of: string,
  sizes: readonly number[],
): Promise<GrowthCurve> {
  const defaults = { groups: 1_000, bindings: 20, callers: 1 };
  const points = [];
  for (const x of sizes) points.push({ x, ...(await measure({ ...defaults, [dimension]: x })) });
  return { of, points };
}

export async function growth(print: Print): Promise<GrowthCurve[]> {
  return [
    await curveByRepos(print),
    await curveBy('groups', 'groups (the caller has role bindings at 20)', [100, 1_000, 10_000]),
    await curveBy('bindings', 'role bindings of the caller, at sibling groups', [1, 10, 100, 1_000]),
    await curveBy('callers', 'callers', [1, 10, 100, 1_000]),
  ];
}

if (import.meta.main) {
  for (const { of, points } of await growth((line) => void process.stdout.write(`${line}\n`))) {
    for (const { x, decision, page } of points) {
      process.stdout.write(`${x} ${of}: decision ${decision.toFixed(1)} us, page of 50 ${page.toFixed(0)} us\n`);
    }
  }
}
