import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { getSetting, putSettingIfAbsent } from './settings.ts';
import type { Store } from './store.ts';

for (const database of databases) {
  describe(`settings on ${database.name}`, () => {
    let store: Store;
    before(async () => {
      store = await temporaryStore(database);
    });
    after(() => store.close());

    it('keep the first value that was stored', async () => {
      assert.equal(await getSetting(store.reader, 'first'), undefined);
      assert.equal(await store.write((tx) => putSettingIfAbsent(tx, 'first', 'a')), 'a');
      assert.equal(await store.write((tx) => putSettingIfAbsent(tx, 'first', 'b')), 'a');
      assert.equal(await getSetting(store.reader, 'first'), 'a');
    });

    it('have one value when several servers store one concurrently', async () => {
      const put = (value: number) => store.write((tx) => putSettingIfAbsent(tx, 'same', `${value}`));
      const agreed = await Promise.all(Array.from({ length: 10 }, (_, i) => put(i)));
      assert.equal(new Set(agreed).size, 1);
      assert.equal(await getSetting(store.reader, 'same'), agreed[0]);
    });
  });
}
