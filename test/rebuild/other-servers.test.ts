import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { createLogger } from '../../src/base/log.ts';
import { newUid } from '../../src/base/uid.ts';
import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import type { Resource } from '../../src/resource/definition.ts';
import { createIndexBuilder } from '../../src/resource/index/index-builder.ts';
import { beginRepair, findUnindexedKinds } from '../../src/resource/index/other-servers.ts';
import { declarationsId } from '../../src/resource/index/register-declarations.ts';
import { findChildren } from '../../src/resource/read.ts';
import { deleteOne, insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store, Transaction } from '../../src/store/store.ts';
import { findDatabase } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { changedRepos } from './changed-declaration.ts';
import {
  assertIndexConsistent,
  changedResources,
  createFormerData,
  type FormerData,
  openChangedStore,
  readBuildState,
} from './scenario.ts';

const log = createLogger({ level: 'silent' });

/** Writes as a server with the former declarations, which connects for this write only. */
async function writeAsOther({ location }: FormerData, work: (tx: Transaction) => Promise<unknown>): Promise<void> {
  const other = await openStore(location);
  try {
    await other.write(async (tx) => void (await work(tx)));
  } finally {
    await other.close();
  }
}

const insertRepo =
  ({ quiet: { group } }: FormerData, resource = repos) =>
  (tx: Transaction) =>
    insert(
      tx,
      resource,
      { message: create(RepoSchema, { name: 'late', description: 'late' }), uid: newUid(group), parent: group },
      Date.now(),
    );
const deleteRepo =
  ({ quiet: { group } }: FormerData) =>
  async (tx: Transaction) => {
    const [first] = await findChildren(tx.forUpdate, repos, group);
    assert.ok(first);
    await deleteOne(tx, repos, first);
  };

/** Calls `work` once, when the last pass has ended and the builder looks for writes of other servers. */
function afterLastPass(store: Store, work: () => Promise<void>): Store {
  let isDone = false;
  const all: Store['reader']['all'] = async (text, ...params) => {
    if (!isDone && text.includes('FROM unindexed_write')) {
      isDone = true;
      await work();
    }
    return store.reader.all(text, ...params);
  };
  return { ...store, reader: { ...store.reader, all } };
}

function startBuilder(t: TestContext, store: Store, resources: readonly Resource[] = changedResources) {
  const builder = createIndexBuilder({ store, resources, clock: Date.now, log });
  t.after(() => builder.stop());
  return builder;
}

describe('servers with other declarations on PostgreSQL', () => {
  async function prepare(t: TestContext): Promise<{ data: FormerData; store: Store }> {
    const data = await createFormerData(findDatabase('PostgreSQL'), 40);
    const store = await openChangedStore(data.location);
    t.after(async () => {
      await store.close();
      await data.location.remove();
    });
    return { data, store };
  }
  const whenComplete = async (store: Store): Promise<void> => {
    await pollUntil(
      async () => ({ ...(await readBuildState(store.reader)), written: await findUnindexedKinds(store.reader) }),
      ({ isComplete, written }) => isComplete && written.length === 0,
    );
  };

  test('a resource that they create at the end of a build is counted once', async (t) => {
    const { data, store } = await prepare(t);
    const builder = startBuilder(
      t,
      afterLastPass(store, () => writeAsOther(data, insertRepo(data))),
    );
    await builder.prepare();
    builder.start();
    await whenComplete(store);
    await assertIndexConsistent(store.reader);
  });

  test('a repair that fails is tried again', async (t) => {
    const { data, store } = await prepare(t);
    const intercepted = afterLastPass(store, () => writeAsOther(data, deleteRepo(data)));
    let failures = 0;
    const builder = startBuilder(t, {
      ...intercepted,
      snapshot(work) {
        if (failures++ === 0) throw new Error('the connection was lost');
        return store.snapshot(work);
      },
    });
    await builder.prepare();
    builder.start();
    await whenComplete(store);
    assert.ok(failures > 0);
    await assertIndexConsistent(store.reader);
  });

  test('a repair begins after the writes that are already recorded', async (t) => {
    const { data, store } = await prepare(t);
    await startBuilder(t, store).prepare();
    await writeAsOther(data, deleteRepo(data));
    const written = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    const steps: string[] = [];
    const other = writeAsOther(data, async (tx) => {
      await deleteRepo(data)(tx);
      await tx.all('SELECT 1');
      written.resolve();
      await commit.promise;
      steps.push('write');
    });
    await written.promise;
    const repair = store.write((tx) => beginRepair(tx, 'repo')).then(() => steps.push('repair'));
    const waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await pollUntil(
      async () => steps.length > 0 || Number((await store.reader.get<{ n: number }>(waiting))?.n) > 0,
      (isDecided) => isDecided,
    );
    commit.resolve();
    await Promise.all([other, repair]);
    assert.deepEqual(steps, ['write', 'repair']);
  });

  test('a server that knows fewer kinds but the same parts does not count as another one', async (t) => {
    const { data, store } = await prepare(t);
    const builder = startBuilder(t, store);
    await builder.prepare();
    builder.start();
    await whenComplete(store);
    await builder.stop();

    const fewer = changedResources.slice(0, -1);
    assert.ok(fewer.some(({ kind }) => kind === repos.kind));
    const later = await openStore({ ...data.location, declarations: declarationsId(fewer) });
    t.after(() => later.close());
    await startBuilder(t, later, fewer).prepare();
    await later.write(async (tx) => void (await insertRepo(data, changedRepos)(tx)));
    assert.deepEqual(await findUnindexedKinds(later.reader), []);
    await assertIndexConsistent(later.reader);
  });
});
