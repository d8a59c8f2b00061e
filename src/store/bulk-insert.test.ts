import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { Code } from '../base/errors.ts';
import type { BulkInsert } from './bulk-insert.ts';
import { type Row, type Store, UniqueViolation } from './store.ts';

const RESOURCES: BulkInsert = {
  into: 'resource',
  columns: {
    ...{ kind: 'text', uid: 'text', parent: 'text', created: 'integer', updated: 'integer' },
    ...{ keys: 'json', body: 'blob', state: 'text' },
  },
  conflict: 'skip',
  returning: ['uid'],
};
const SETTINGS: BulkInsert = { into: 'setting', columns: { key: 'text', value: 'text' } };
const plain = (rows: readonly Row[]): Row[] => rows.map((row) => ({ ...row }));

for (const database of databases) {
  describe(`insertions on ${database.name}`, () => {
    let store: Store;
    const settings = async (): Promise<Row[]> =>
      plain(await store.reader.all("SELECT key, value FROM setting WHERE key IN ('a', 'b', 'c', 'd') ORDER BY key"));
    before(async () => {
      store = await temporaryStore(database);
    });
    after(() => store.close());

    it('inserts any number of rows with any values, and answers of each what is asked for', async () => {
      const names = [
        '',
        '"',
        '\\\\',
        '{a,b}',
        'NULL',
        " ' ",
        'é😀',
        '\\n',
        ...Array.from({ length: 6_000 }, (_, n) => `n${n}`),
      ];
      const bytes = new Uint8Array([0, 92, 34, 255]).subarray(1);
      const values = names.flatMap((name, n) => {
        return [
          'bulk',
          name,
          '/',
          n,
          -n,
          JSON.stringify({ name }),
          n % 2 ? bytes : new Uint8Array(0),
          n % 3 ? name : null,
        ];
      });
      const added = await store.write((tx) => tx.insert<{ uid: string }>(RESOURCES, values));
      assert.deepEqual(new Set(added.map(({ uid }) => uid)), new Set(names));
      const rows = await store.reader.all<{ uid: string; body: Uint8Array } & Row>(
        "SELECT uid, created, updated, keys ->> 'name' AS name, body, state FROM resource WHERE kind = $1 ORDER BY created",
        'bulk',
      );
      const wanted = names.map((name, n) => {
        const body = n % 2 ? '5c22ff' : '';
        return { uid: name, created: n, updated: 0 - n, name, body, state: n % 3 ? name : null };
      });
      assert.deepEqual(
        rows.map((row) => ({ ...row, body: Buffer.from(row.body).toString('hex') })),
        wanted,
      );
      assert.deepEqual(await store.write((tx) => tx.insert(RESOURCES, [])), []);
    });

    it('leaves out rows that are there, or adds to them, as the insertion says', async () => {
      await store.write((tx) => tx.insert(SETTINGS, ['a', 'old']));
      const skipping: BulkInsert = { ...SETTINGS, conflict: 'skip', returning: ['key'] };
      const added = await store.write((tx) => tx.insert(skipping, ['a', 'new', 'b', 'new', 'b', 'twice']));
      assert.deepEqual(plain(added), [{ key: 'b' }]);
      assert.deepEqual(await settings(), [
        { key: 'a', value: 'old' },
        { key: 'b', value: 'new' },
      ]);
      const counting: BulkInsert = {
        into: 'list',
        columns: { scope: 'text', kind: 'text', facet: 'text', n: 'integer' },
        conflict: { key: ['scope', 'kind', 'facet'], sum: 'n' },
        returning: ['id', 'facet'],
      };
      const count = () => store.write((tx) => tx.insert(counting, ['s', 'k', 'x', 1, 's', 'k', 'y', 10]));
      const [first, second] = [await count(), await count()];
      assert.deepEqual(plain(first), plain(second), 'they keep their ids');
      const lists = await store.reader.all("SELECT facet, n FROM list WHERE scope = 's' ORDER BY facet");
      assert.deepEqual(plain(lists), [
        { facet: 'x', n: 2 },
        { facet: 'y', n: 20 },
      ]);
      await assert.rejects(
        store.write((tx) => tx.insert(SETTINGS, ['c', '', 'a', ''])),
        UniqueViolation,
      );
      await assert.rejects(
        store.write((tx) => tx.insertUnawaited(SETTINGS, ['c', '', 'd', '\0'])),
        { code: Code.INVALID_ARGUMENT },
      );
      assert.equal((await settings()).length, 2);
    });
  });
}
