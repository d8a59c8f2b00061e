import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { create } from '@bufbuild/protobuf';
import { newUid, parseUid, type Uid } from '../../src/base/uid.ts';
import { GroupSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  type Repo,
  RepoSchema,
  ReposService,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { resources } from '../../src/domains/domains.ts';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import type { Resource } from '../../src/resource/definition.ts';
import { findProgress } from '../../src/resource/index/build-progress.ts';
import { declarationsId } from '../../src/resource/index/register-declarations.ts';
import { insert, insertAll } from '../../src/resource/write.ts';
import { findListingIndex } from '../../src/store/listing-indexes.ts';
import { openStore } from '../../src/store/open.ts';
import type { Reader, Store } from '../../src/store/store.ts';
import { assertConsistent } from '../support/consistency.ts';
import type { Database, DataLocation } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { startServerOn } from '../support/server.ts';
import { CallError, type Client, wires } from '../support/wires.ts';
import { changedRepos } from './changed-declaration.ts';

/** All declarations of the test build. */
export const changedResources = resources.map((resource) =>
  resource.kind === repos.kind ? (changedRepos as Resource) : resource,
);
const PROGRAM = fileURLToPath(new URL('./changed-build.program.ts', import.meta.url));
const { listRepos, createRepo, updateRepo, deleteRepo } = ReposService.method;
const GROUPS = 10;
const UNAVAILABLE = 14;

/** Data that the release before has written. */
export interface FormerData {
  readonly location: DataLocation;
  readonly organization: Uid;
  /** A group whose repos nobody changes, with the names and descriptions of its repos. */
  readonly quiet: { readonly group: Uid; readonly repos: readonly { name: string; description: string }[] };
  /** Groups whose repos are changed while the index is built. */
  readonly busy: readonly Uid[];
}

/** Starts a server of the product once, and stores repos under its declarations. */
export async function createFormerData(database: Database, count: number): Promise<FormerData> {
  const location = await database.createDataLocation();
  const server = await startServerOn(location);
  await server.stop();
  const organization = parseUid('organization', server.organization);
  const store = await openStore(location);
  try {
    const now = Date.now();
    const uids = Array.from({ length: GROUPS }, () => newUid(organization));
    const repoNames = Array.from({ length: count / GROUPS }, (_, i) => ({
      name: `repo-${i}`,
      // In another order than the names.
      description: `${String((i * 7919) % 1000).padStart(4, '0')} ${i}`,
    }));
    for (const [i, uid] of uids.entries()) {
      await store.write(async (tx) => {
        await insert(
          tx,
          groups,
          { message: create(GroupSchema, { name: `group ${i}` }), uid, parent: organization },
          now,
        );
        const drafts = repoNames.map((each) => ({ message: create(RepoSchema, each), uid: newUid(uid), parent: uid }));
        await insertAll(tx, repos, drafts, now);
      });
    }
    const [quiet, ...busy] = uids;
    assert.ok(quiet);
    return { location, organization, quiet: { group: quiet, repos: repoNames }, busy };
  } finally {
    await store.close();
  }
}

/** Starts a server of the test build, whose declaration of repos has changed. */
export const spawnChangedBuild = (location: DataLocation): Promise<ServerProcess> =>
  spawnServer(location, {}, [], PROGRAM, []);

/** Opens the database as the test build does. The builder waits for connections of other builds to end. */
export const openChangedStore = (location: DataLocation): Promise<Store> =>
  openStore({ ...location, declarations: declarationsId(changedResources) });

/** Checks all tables against the declarations of the test build. */
export const assertIndexConsistent = (db: Reader): Promise<void> => assertConsistent(db, changedResources);

/** Whether the index of repos is complete, and how many repos it has. */
export async function readBuildState(db: Reader): Promise<{ isComplete: boolean; done: number }> {
  const index = await findListingIndex(db, 'repo');
  const isComplete =
    index !== undefined && index.generation > 0 && index.phase === 'complete' && index.dropping.size === 0;
  return { isComplete, done: (await findProgress(db, 'repo'))?.done ?? 0 };
}

const byDescription = (a: { description: string }, b: { description: string }): number =>
  a.description < b.description ? -1 : a.description > b.description ? 1 : 0;

/** Checks that lists of repos that nobody changes are right, in old and new orders and with the new filter. */
export async function assertListsRight(api: Client, { quiet }: FormerData): Promise<void> {
  const uidp = { childrenOf: quiet.group };
  const expected = quiet.repos.toSorted(byDescription).map(({ description }) => description);
  const total = BigInt(expected.length);
  const descriptions: string[] = [];
  for (let pageToken = '', first = true; first || pageToken !== ''; first = false) {
    const page = await api.call(listRepos, { uidp, orderBy: 'description', pageSize: 200, pageToken });
    assert.equal(page.totalCount, total, 'the total in the new order');
    descriptions.push(...page.repos.map((repo: Repo) => repo.description));
    pageToken = page.nextPageToken;
  }
  assert.deepEqual(descriptions, expected, 'the new order');

  const some = quiet.repos[expected.length >> 1];
  assert.ok(some);
  const named = await api.call(listRepos, { uidp, name: some.name });
  assert.deepEqual(
    named.repos.map((repo: Repo) => repo.description),
    [some.description],
    'the new filter',
  );
  assert.equal(named.totalCount, 1n, 'the total with the new filter');

  const created = await api.call(listRepos, { uidp, orderBy: 'create_time desc', pageSize: 10 });
  assert.equal(created.totalCount, total, 'the total in an order that has not changed');
  assert.equal(created.repos.length, 10);
}

/**
 * Lists all repos of the organization in the new order. Returns whether that was refused, because the list is too long to
 * be read without an index.
 */
export async function isLongListRefused(api: Client, { organization }: FormerData): Promise<boolean> {
  try {
    const uidp = { descendantsOf: organization };
    const { repos: page } = await api.call(listRepos, { uidp, orderBy: 'description desc', pageSize: 20 });
    const descriptions = (page as Repo[]).map(({ description }) => description);
    assert.deepEqual(descriptions, descriptions.toSorted().reverse());
    return false;
  } catch (error) {
    if (!(error instanceof CallError) || !/being built \(\d+ %\)/.test(error.message)) throw error;
    assert.equal(error.code, UNAVAILABLE);
    assert.equal(error.retryAfter, '5');
    return true;
  }
}

/** Creates, changes and deletes repos until `isOver`, and checks the lists of its own group in the new order. */
export async function writeUntil(api: Client, parent: Uid, isOver: () => boolean): Promise<number> {
  let writes = 0;
  for (let turn = 0; !isOver(); turn++) {
    try {
      const uidp = { childrenOf: parent };
      const name = `new-${turn}-${process.hrtime.bigint()}`;
      const repo: Repo = await api.call(createRepo, { parent, repo: { name, description: 'zzz' } });
      const listed = await api.call(listRepos, { uidp, name });
      assert.deepEqual(
        listed.repos.map(({ uid }: Repo) => uid),
        [repo.uid],
        'a new repo has its name',
      );
      // One that an earlier version has indexed.
      const { repos: old } = await api.call(listRepos, { uidp, orderBy: 'create_time', pageSize: 2 });
      const [first, second] = old as Repo[];
      if (first) await api.call(updateRepo, { repo: { uid: first.uid, description: `! ${turn}` } });
      const { repos: changed } = await api.call(listRepos, { uidp, orderBy: 'description', pageSize: 1 });
      assert.match((changed as Repo[])[0]?.description ?? '', /^!/, 'a changed description comes first');
      // On a slow machine a group runs out of older repos.
      if (second && second.uid !== repo.uid) await api.call(deleteRepo, { uid: second.uid });
      if (turn % 2 === 0) await api.call(deleteRepo, { uid: repo.uid });
      writes += 4;
    } catch (error) {
      // The server was killed.
      if (error instanceof CallError && error.code !== UNAVAILABLE && error.code !== 1) throw error;
      if (error instanceof assert.AssertionError) throw error;
      if (!isOver()) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  return writes;
}

export interface RebuildCounts {
  /** Checks of lists that were right. */
  readonly checks: number;
  readonly writes: number;
  /** Long lists that were refused while their index was built. */
  readonly refused: number;
}

/**
 * Builds the index of the changed declaration, kills the server `kills` times meanwhile, and checks that lists are right all
 * the time.
 */
export async function rebuildWithKills(data: FormerData, kills: number): Promise<RebuildCounts> {
  const store = await openChangedStore(data.location);
  const total = data.quiet.repos.length * GROUPS;
  let checks = 0;
  let writes = 0;
  let refused = 0;
  try {
    for (let round = 0; round <= kills; round++) {
      const server = await spawnChangedBuild(data.location);
      let isOver = false;
      try {
        const token = await mintOwnerToken(data.location.dataDir);
        const [wire] = wires.slice(round % wires.length);
        assert.ok(wire);
        const api = wire.connect(server.url, token);
        const writers = data.busy.slice(0, 3).map((group) => writeUntil(api, group, () => isOver));
        const check = async (): Promise<void> => {
          while (!isOver) {
            try {
              await assertListsRight(api, data);
              if (await isLongListRefused(api, data)) refused++;
              checks++;
            } catch (error) {
              if (error instanceof assert.AssertionError) throw error;
              if (!isOver) throw error;
            }
          }
        };
        const checking = check();
        // All kills are in the first part of the build, so that the last server has something left to do.
        const target = ((round + 1) * total) / (3 * (kills + 1));
        const state = await Promise.race([
          pollUntil(
            () => readBuildState(store.reader),
            ({ done, isComplete }) => {
              return round < kills ? isComplete || done >= target : isComplete;
            },
          ),
          ...writers,
          checking,
        ]);
        if (round < kills) {
          assert.ok(state && typeof state === 'object' && !state.isComplete, 'the build ended before it was killed');
          isOver = true;
          await server.kill();
        } else {
          await assertListsRight(api, data);
          assert.equal(await isLongListRefused(api, data), false, 'long lists are not refused afterwards');
          isOver = true;
        }
        for (const count of await Promise.all(writers)) writes += count;
        await checking;
        api.close();
      } finally {
        isOver = true;
        if (round < kills) await server.kill();
        else assert.equal(await server.stop(), 0, server.log.slice(-5).join('\n'));
      }
    }
    await assertIndexConsistent(store.reader);
    return { checks, writes, refused };
  } finally {
    await store.close();
  }
}
