import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import { find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { putSetting } from '../../../store/settings.ts';
import type { Store } from '../../../store/store.ts';
import { builtinRoles, OWNER } from './builtin-roles.ts';
import { roles } from './roles.ts';
import { syncBuiltinRoles } from './sync-builtin-roles.ts';

async function storedRoles(store: Store) {
  return store.reader.all<{ uid: string; created: number; updated: number }>(
    "SELECT uid, created, updated FROM resource WHERE kind = 'role' ORDER BY uid",
  );
}

for (const database of databases) {
  describe(`built-in roles on ${database.name}`, () => {
    test('are stored once when several servers start at the same time', async (t) => {
      const store = await temporaryStore(database);
      t.after(() => store.close());
      await Promise.all([1000, 2000, 3000].map((now) => syncBuiltinRoles(store, () => now)));
      const first = await storedRoles(store);
      assert.deepEqual(
        first.map(({ uid }) => uid),
        builtinRoles.map(({ uid }) => uid).toSorted(),
      );
      await syncBuiltinRoles(store, () => 4000);
      assert.deepEqual(await storedRoles(store), first);
    });

    test('are updated by a newer server and keep their create time', async (t) => {
      const store = await temporaryStore(database);
      t.after(() => store.close());
      await syncBuiltinRoles(store, () => 1000);
      // The state that an older server would leave.
      await store.write(async (tx) => {
        const owner = (await find(tx, roles, OWNER.uid)) ?? assert.fail();
        const message = Object.assign(owner.message, { description: 'old', capabilities: [] });
        await update(tx, roles, owner, { message, state: undefined }, 2000);
        await putSetting(tx, 'builtin-roles.fingerprint', 'old');
      });
      await syncBuiltinRoles(store, () => 3000);
      const owner = (await find(store.reader, roles, OWNER.uid)) ?? assert.fail();
      assert.equal(owner.message.description, OWNER.description);
      assert.notEqual(owner.message.capabilities.length, 0);
      assert.deepEqual([owner.created, owner.updated], [1000, 3000]);
      const others = (await storedRoles(store)).filter(({ uid }) => uid !== OWNER.uid);
      assert.ok(others.every(({ updated }) => updated === 1000));
    });
  });
}
