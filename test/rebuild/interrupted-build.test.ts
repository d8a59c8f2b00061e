import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createLogger } from '../../src/base/log.ts';
import { resources } from '../../src/domains/domains.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import type { Resource } from '../../src/resource/definition.ts';
import { buildBatch } from '../../src/resource/index/build-batch.ts';
import { createIndexBuilder } from '../../src/resource/index/index-builder.ts';
import { partSet } from '../../src/resource/index/index-parts.ts';
import { purgeParts } from '../../src/resource/index/purge-parts.ts';
import { putListingIndex, registerDeclarations } from '../../src/resource/index/register-declarations.ts';
import { findChildren } from '../../src/resource/read.ts';
import { deleteOne } from '../../src/resource/write.ts';
import { findListingIndex, type ListingIndexes } from '../../src/store/listing-indexes.ts';
import type { Store } from '../../src/store/store.ts';
import { type Database, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { changedRepos } from './changed-declaration.ts';
import {
  assertIndexConsistent,
  changedResources,
  createFormerData,
  openChangedStore,
  readBuildState,
} from './scenario.ts';

/** Builds the index of the changed declaration in this process. */
async function buildIndexes(store: Store): Promise<void> {
  const log = createLogger({ level: 'silent' });
  const builder = createIndexBuilder({ store, resources: changedResources, clock: Date.now, log });
  await builder.prepare();
  builder.start();
  await pollUntil(
    () => readBuildState(store.reader),
    ({ isComplete }) => isComplete,
  );
  await builder.stop();
}

/** Opens a database with repos that were created before the declaration changed. Removes it after the test. */
async function openWithRepos(t: TestContext, database: Database, repoCount: number) {
  const data = await createFormerData(database, repoCount);
  const store = await openChangedStore(data.location);
  t.after(async () => {
    await store.close();
    await data.location.remove();
  });
  return { data, store };
}

for (const database of databases) {
  describe(`an interrupted build on ${database.name}`, () => {
    test('a server that was suspended while it deleted rows deletes none of a later phase', async (t) => {
      const { store } = await openWithRepos(t, database, 20);
      await buildIndexes(store);
      const index = await findListingIndex(store.reader, repos.kind);
      assert.ok(index);
      const facet = partSet(['facet:name']);
      const pause = () => Promise.resolve();
      await assert.rejects(purgeParts(store, { ...index, phase: 'purging' }, facet, pause), /has changed/);
      await assert.rejects(purgeParts(store, { ...index, generation: 0 }, facet, pause), /has changed/);
      await assertIndexConsistent(store.reader);
    });

    test('a server that was suspended before the build does not begin it again', async (t) => {
      const { store } = await openWithRepos(t, database, 20);
      const { listingIndexes } = store.reader;
      await registerDeclarations(store, changedResources, Date.now);
      const waiting = await findListingIndex(store.reader, repos.kind);
      assert.ok(waiting && listingIndexes);
      assert.equal(waiting.phase, 'waiting');
      // Another server has taken over and has added some resources.
      const building = { ...waiting, phase: 'building' as const };
      await store.write((tx) => putListingIndex(tx, building));
      await buildBatch(store, changedRepos as Resource, building, 10, Date.now());
      let refreshes = 0;
      const suspended: ListingIndexes = {
        get: (kind) => (refreshes < 2 && kind === repos.kind ? waiting : listingIndexes.get(kind)),
        async refresh() {
          refreshes++;
          await listingIndexes.refresh();
        },
      };
      await buildIndexes({ ...store, reader: { ...store.reader, listingIndexes: suspended } });
      await assertIndexConsistent(store.reader);
    });

    test('a batch passes over resources that the index has, and adds no more than its limit', async (t) => {
      const { store } = await openWithRepos(t, database, 40);
      await registerDeclarations(store, changedResources, Date.now);
      const index = await findListingIndex(store.reader, repos.kind);
      assert.ok(index);
      const building = { ...index, phase: 'building' as const };
      const first = "SELECT uid FROM resource WHERE kind = 'repo' ORDER BY uid LIMIT 20";
      await store.write(async (tx) => {
        await putListingIndex(tx, building);
        const mark = `UPDATE resource SET indexed = $1 WHERE kind = 'repo' AND uid IN (${first})`;
        await tx.run(mark, building.generation);
      });
      const result = await buildBatch(store, changedRepos as Resource, building, 5, Date.now());
      assert.equal(result?.progress.done, 5);
      assert.ok(result.transactionMs > 0);
    });

    test('what an earlier declaration has left is deleted although no resource exists', async (t) => {
      const { data, store } = await openWithRepos(t, database, 20);
      await buildIndexes(store);
      // Back to the former declaration, whose server is stopped before it has deleted the rows of the other one.
      await registerDeclarations(store, resources, Date.now);
      for (const group of [data.quiet.group, ...data.busy]) {
        await store.write(async (tx) => {
          for (const repo of await findChildren(tx, repos, group)) await deleteOne(tx, repos, repo);
        });
      }
      await buildIndexes(store);
      await assertIndexConsistent(store.reader);
    });
  });
}
