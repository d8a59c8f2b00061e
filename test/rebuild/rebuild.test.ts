import { describe, test } from 'node:test';
import { databases } from '../support/databases.ts';
import { createFormerData, rebuildWithKills } from './scenario.ts';

for (const database of databases) {
  describe(`a changed declaration on ${database.name}`, () => {
    // `npm run test:rebuild` has more repos and more kills.
    test('lists are right during and after the rebuild, with writes and a kill', { timeout: 240_000 }, async (t) => {
      const data = await createFormerData(database, 800);
      t.after(() => data.location.remove());
      const { checks, writes } = await rebuildWithKills(data, 1);
      t.diagnostic(`${checks} checks of the lists and ${writes} writes`);
    });
  });
}
