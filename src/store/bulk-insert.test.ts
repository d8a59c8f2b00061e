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
  describe(`bulk inserts on ${database.name}`, () => {
    let store: Store;
    const settings = async (): Promise<Row[]> =>
      plain(await store.reader.all("SELECT key, value FROM setting WHERE key IN ('a', 'b', 'c', 'd') ORDER BY key"));
    before(async () => {
      store = await temporaryStore(database);
    });
    after(() => store.close());

    it('insert any number of rows with any values, and return the columns of `returning`', async () => {
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
      const expected = names.map((name, n) => {
        const body = n % 2 ? '5c22ff' : '';
        return { uid: name, created: n, updated: 0 - n, name, body, state: n % 3 ? name : null };
      });
      assert.deepEqual(
        rows.map((row) => ({ ...row, body: Buffer.from(row.body).toString('hex') })),
        expected,
      );
      assert.deepEqual(await store.write((tx) => tx.insert(RESOURCES, [])), []);
    });

    it('skip rows whose key exists, also in the same statement', async () => {
      await store.write((tx) => tx.insert(SETTINGS, ['a', 'old']));
      const skipping: BulkInsert = { ...SETTINGS, conflict: 'skip', returning: ['key'] };
      const added = await store.write((tx) => tx.insert(skipping, ['a', 'new', 'b', 'new', 'b', 'twice']));
      assert.deepEqual(plain(added), [{ key: 'b' }]);
      assert.deepEqual(await settings(), [
        { key: 'a', value: 'old' },
        { key: 'b', value: 'new' },
      ]);
    });

    it('add a column to that of the row with the same key, also in the same statement', async () => {
      const counting: BulkInsert = {
        into: 'list',
        columns: { scope: 'text', kind: 'text', facet: 'text', n: 'integer' },
        conflict: { key: ['scope', 'kind', 'facet'], sum: 'n' },
        returning: ['id', 'facet'],
      };
      const count = () => store.write((tx) => tx.insert(counting, ['s', 'k', 'x', 1, 's', 'k', 'y', 10]));
      const [first, second] = [await count(), await count()];
      assert.deepEqual(plain(first), plain(second), 'the rows keep their ids');
      await store.write((tx) => tx.insert(counting, ['s', 'k', 'x', 5, 's', 'k', 'y', 50, 's', 'k', 'x', 7]));
      const lists = await store.reader.all("SELECT facet, n FROM list WHERE scope = 's' ORDER BY facet");
      assert.deepEqual(plain(lists), [
        { facet: 'x', n: 14 },
        { facet: 'y', n: 70 },
      ]);
    });

    it('replace a column of the row with the same key, also in the same statement', async () => {
      const replacing: BulkInsert = { ...SETTINGS, conflict: { key: ['key'], replace: 'value' } };
      const storedValue = async (key: string) =>
        (await store.reader.get<{ value: string }>('SELECT value FROM setting WHERE key = $1', key))?.value;
      await store.write((tx) => tx.insert(SETTINGS, ['r1', 'old']));
      await store.write((tx) => tx.insert(replacing, ['r1', 'new', 'r2', 'new']));
      assert.deepEqual([await storedValue('r1'), await storedValue('r2')], ['new', 'new']);
      await store.write((tx) => tx.insert(replacing, ['r1', 'first', 'r3', 'only', 'r2', 'same', 'r1', 'second']));
      assert.ok(['first', 'second'].includes((await storedValue('r1')) ?? ''), 'one of the two values is stored');
      assert.deepEqual([await storedValue('r2'), await storedValue('r3')], ['same', 'only']);
      // More rows of one key than any single statement has on SQLite.
      const values = Array.from({ length: 500 }, (_, n) => ['r4', `${n}`]).flat();
      await store.write((tx) => tx.insertUnawaited(replacing, values));
      assert.match((await storedValue('r4')) ?? '', /^\d+$/);
      const rows = await store.reader.all("SELECT key FROM setting WHERE key IN ('r1', 'r2', 'r3', 'r4')");
      assert.equal(rows.length, 4);
    });

    it('return the columns of `returning` of a replaced row', async () => {
      const replacing: BulkInsert = { ...SETTINGS, conflict: { key: ['key'], replace: 'value' }, returning: ['value'] };
      for (const value of ['first', 'second']) {
        const rows = await store.write((tx) => tx.insert(replacing, ['returned', value]));
        assert.deepEqual(plain(rows), [{ value }]);
      }
    });

    it('insert no row if one fails', async () => {
      const before = await settings();
      await assert.rejects(
        store.write((tx) => tx.insert(SETTINGS, ['c', '', 'a', ''])),
        UniqueViolation,
      );
      await assert.rejects(
        store.write((tx) => tx.insertUnawaited(SETTINGS, ['c', '', 'd', '\0'])),
        { code: Code.INVALID_ARGUMENT },
      );
      assert.deepEqual(await settings(), before);
    });
  });
}
