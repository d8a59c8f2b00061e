import { describe, test } from 'node:test';
import { createLogger } from '../../src/base/log.ts';
import { resources } from '../../src/domains/domains.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { createIndexBuilder } from '../../src/resource/index/index-builder.ts';
import { registerDeclarations } from '../../src/resource/index/register-declarations.ts';
import { findChildren } from '../../src/resource/read.ts';
import { deleteOne } from '../../src/resource/write.ts';
import type { Store } from '../../src/store/store.ts';
import { databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
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

for (const database of databases) {
  describe(`an interrupted build on ${database.name}`, () => {
    test('what an earlier declaration has left is deleted although no resource exists', async (t) => {
      const data = await createFormerData(database, 20);
      const store = await openChangedStore(data.location);
      t.after(async () => {
        await store.close();
        await data.location.remove();
      });
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
