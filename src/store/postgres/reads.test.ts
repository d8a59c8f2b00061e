import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type FreshDatabase, freshDatabase } from '../../../test/support/postgres.ts';
import { Code } from '../../base/errors.ts';
import { pointRead } from '../point-read.ts';
import type { Store } from '../store.ts';
import { openPostgres } from './postgres.ts';

const FIND = pointRead({ columns: ['key', 'n', 'body'], from: 'item', key: ['kind', 'key'] });
const ALL = "SELECT key, n FROM item WHERE kind = 'many' AND n < $1 ORDER BY key";
const PUT = 'INSERT INTO item (kind, key, n, body) VALUES ($1, $2, $3, $4)';

describe('concurrent reads of PostgreSQL', () => {
  let database: FreshDatabase;
  let store: Store;
  let other: Store;
  before(async () => {
    database = await freshDatabase();
    store = await openPostgres(database.url, { connections: 1 });
    other = await openPostgres(database.url);
    await other.write(async (tx) => {
      await tx.run(`CREATE TABLE item (kind TEXT COLLATE "C", key TEXT COLLATE "C", n BIGINT NOT NULL, body BYTEA,
        PRIMARY KEY (kind, key))`);
      for (let n = 0; n < 100; n++) await tx.run(PUT, 'many', `k${n}`, n, new Uint8Array([n]));
    });
  });
  after(async () => {
    await Promise.all([store.close(), other.close()]);
    await database.drop();
  });

  /** How often the only connection ran statements whose text matches `like`. */
  const runs = async (like: string): Promise<number> => {
    const row = await store.reader.get<{ n: number }>(
      'SELECT sum(generic_plans + custom_plans) AS n FROM pg_prepared_statements WHERE statement LIKE $1',
      like,
    );
    return row?.n ?? 0;
  };

  it('by key are batched into a few statements, and each gets its own row', async () => {
    const numbers = Array.from({ length: 150 }, (_, at) => (at * 7) % 120);
    const before = await runs('SELECT requested.position%');
    const rows = await Promise.all(numbers.map((n) => store.reader.get(FIND, 'many', `k${n}`)));
    assert.deepEqual(
      rows,
      numbers.map((n) => (n < 100 ? { key: `k${n}`, n, body: Buffer.from([n]) } : undefined)),
    );
    const count = (await runs('SELECT requested.position%')) - before;
    assert.ok(count <= 5, `${count} statements`);
  });

  it('by key find any text', async () => {
    const odd = ['', '"', '\\', '{}', 'a,b', 'NULL', 'null', ' x ', "'", 'é😀', '\\"', '\n'];
    await other.write(async (tx) => {
      for (const key of odd) await tx.run(PUT, 'odd', key, 1, null);
    });
    const rows = await Promise.all(odd.map((key) => store.reader.get(FIND, 'odd', key)));
    assert.deepEqual(
      rows.map((row) => row?.key),
      odd,
    );
  });

  it('fail for an invalid key, and only for that key', async () => {
    const nul = async () => store.reader.get(FIND, 'many', '\0');
    const [good, bad] = await Promise.allSettled([store.reader.get(FIND, 'many', 'k1'), nul()]);
    assert.equal(good.status, 'fulfilled');
    assert.equal(bad.status === 'rejected' && bad.reason.code, Code.INVALID_ARGUMENT);
  });

  it('that are equal share a few statements, and each gets its own array', async () => {
    const before = await runs('SELECT key, n FROM item%');
    const all = await Promise.all(Array.from({ length: 50 }, () => store.reader.all(ALL, 10)));
    for (const rows of all) assert.equal(rows.splice(0).length, 10);
    const count = (await runs('SELECT key, n FROM item%')) - before;
    assert.ok(count <= 4, `${count} statements`);
    assert.deepEqual(
      (await Promise.all([store.reader.all(ALL, 3), store.reader.all(ALL, 5)])).map(({ length }) => length),
      [3, 5],
    );
  });

  it('see every commit that finished before they were called', async () => {
    await other.write((tx) => tx.run(PUT, 'counter', 'c', 0, null));
    const background: unknown[] = [];
    const readMany = () => {
      for (let i = 0; i < 10; i++) background.push(store.reader.get(FIND, 'counter', 'c'));
      for (let i = 0; i < 10; i++) background.push(store.reader.all(ALL, 1));
    };
    for (let n = 1; n <= 50; n++) {
      readMany();
      await other.write((tx) => tx.run("UPDATE item SET n = $1 WHERE kind = 'counter'", n));
      readMany();
      assert.equal((await store.reader.get(FIND, 'counter', 'c'))?.n, n);
      assert.equal((await store.reader.all("SELECT n FROM item WHERE kind = 'counter'"))[0]?.n, n);
    }
    await Promise.all(background);
  });

  it('fail when their statement fails, and work again afterwards', async () => {
    await other.write((tx) => tx.run('ALTER TABLE item RENAME TO hidden'));
    const readMany = () => Array.from({ length: 20 }, (_, n) => store.reader.get(FIND, 'many', `k${n}`));
    for (const { status } of await Promise.allSettled(readMany())) assert.equal(status, 'rejected');
    await other.write((tx) => tx.run('ALTER TABLE hidden RENAME TO item'));
    assert.ok((await Promise.all(readMany())).every((row) => row !== undefined));
  });

  it('all return before the store closes, and are refused afterwards', async () => {
    const closing = await openPostgres(database.url, { connections: 1 });
    const reads = Array.from({ length: 20 }, (_, n) => closing.reader.get(FIND, 'many', `k${n}`));
    const closed = closing.close();
    assert.ok((await Promise.all(reads)).every((row) => row !== undefined));
    await closed;
    await assert.rejects(async () => closing.reader.get(FIND, 'many', 'k1'), { code: Code.UNAVAILABLE });
  });
});
