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

describe('reads of PostgreSQL that come at the same time', () => {
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

  /** How often the one connection ran statements whose text is like this. */
  const runs = async (like: string): Promise<number> => {
    const row = await store.reader.get<{ n: number }>(
      'SELECT sum(generic_plans + custom_plans) AS n FROM pg_prepared_statements WHERE statement LIKE $1',
      like,
    );
    return row?.n ?? 0;
  };

  it('by key are a few statements, and each gets its own row', async () => {
    const wanted = Array.from({ length: 150 }, (_, at) => (at * 7) % 120);
    const before = await runs('SELECT asked.place%');
    const rows = await Promise.all(wanted.map((n) => store.reader.get(FIND, 'many', `k${n}`)));
    assert.deepEqual(
      rows,
      wanted.map((n) => (n < 100 ? { key: `k${n}`, n, body: Buffer.from([n]) } : undefined)),
    );
    const count = (await runs('SELECT asked.place%')) - before;
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

  it('refuse what no text can hold, and only to the one who asked for it', async () => {
    const nul = async () => store.reader.get(FIND, 'many', '\0');
    const [good, bad] = await Promise.allSettled([store.reader.get(FIND, 'many', 'k1'), nul()]);
    assert.equal(good.status, 'fulfilled');
    assert.equal(bad.status === 'rejected' && bad.reason.code, Code.INVALID_ARGUMENT);
  });

  it('that ask for the same are a few statements, and each gets an array of its own', async () => {
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

  it('are never older than their question, whatever others have just committed', async () => {
    await other.write((tx) => tx.run(PUT, 'counter', 'c', 0, null));
    const background: unknown[] = [];
    const ask = () => {
      for (let i = 0; i < 10; i++) background.push(store.reader.get(FIND, 'counter', 'c'));
      for (let i = 0; i < 10; i++) background.push(store.reader.all(ALL, 1));
    };
    for (let n = 1; n <= 50; n++) {
      ask();
      await other.write((tx) => tx.run("UPDATE item SET n = $1 WHERE kind = 'counter'", n));
      ask();
      assert.equal((await store.reader.get(FIND, 'counter', 'c'))?.n, n);
      assert.equal((await store.reader.all("SELECT n FROM item WHERE kind = 'counter'"))[0]?.n, n);
    }
    await Promise.all(background);
  });

  it('fail together when their statement fails, and work again afterwards', async () => {
    await other.write((tx) => tx.run('ALTER TABLE item RENAME TO hidden'));
    const ask = () => Array.from({ length: 20 }, (_, n) => store.reader.get(FIND, 'many', `k${n}`));
    for (const { status } of await Promise.allSettled(ask())) assert.equal(status, 'rejected');
    await other.write((tx) => tx.run('ALTER TABLE hidden RENAME TO item'));
    assert.ok((await Promise.all(ask())).every((row) => row !== undefined));
  });

  it('are all answered before the store closes, and refused from then on', async () => {
    const closing = await openPostgres(database.url, { connections: 1 });
    const asked = Array.from({ length: 20 }, (_, n) => closing.reader.get(FIND, 'many', `k${n}`));
    const closed = closing.close();
    assert.ok((await Promise.all(asked)).every((row) => row !== undefined));
    await closed;
    await assert.rejects(async () => closing.reader.get(FIND, 'many', 'k1'), { code: Code.UNAVAILABLE });
  });
});
