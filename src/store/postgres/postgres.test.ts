import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { type FreshDatabase, freshDatabase } from '../../../test/support/postgres.ts';
import { ApiError, Code } from '../../base/errors.ts';
import type { Store, Transaction } from '../store.ts';
import { openPostgres } from './postgres.ts';

const PUT = 'INSERT INTO item (key, n) VALUES ($1, $2)';
const put = (key: string) => (tx: Transaction) => tx.run(PUT, key, 0);
const DIE = 'SELECT pg_terminate_backend(pg_backend_pid())';
const saying = (message: RegExp) => ({ name: 'ApiError', code: Code.UNAVAILABLE, message });

describe('PostgreSQL', () => {
  let database: FreshDatabase;
  let store: Store;
  const keys = async (): Promise<unknown[]> =>
    (await store.reader.all('SELECT key FROM item ORDER BY key')).map(({ key }) => key);

  before(async () => {
    database = await freshDatabase();
    // Deadlocks are looked for after 10 ms, not after the usual second.
    store = await openPostgres(`${database.url}&options=${encodeURIComponent('-c deadlock_timeout=10ms')}`);
    await store.write((tx) => tx.run('CREATE TABLE item (key TEXT PRIMARY KEY, n BIGINT NOT NULL)'));
  });
  beforeEach(() => store.write((tx) => tx.run('DELETE FROM item')));
  after(async () => {
    await store.close();
    await database.drop();
  });

  it('tries a transaction again that lost a deadlock', async () => {
    await Promise.all([store.write(put('a')), store.write(put('b'))]);
    const bothHoldOne = Promise.withResolvers<void>();
    let runs = 0;
    const inOrder = (first: string, second: string) =>
      store.write(async (tx) => {
        const add = (key: string) => tx.run('UPDATE item SET n = n + 1 WHERE key = $1', key);
        await add(first);
        if (++runs === 2) bothHoldOne.resolve();
        await bothHoldOne.promise;
        await add(second);
      });
    await Promise.all([inOrder('a', 'b'), inOrder('b', 'a')]);
    assert.equal(runs, 3, 'one of them ran twice');
    assert.equal((await store.reader.get('SELECT sum(n) AS total FROM item'))?.total, 4);
  });

  it('gives up on a conflict that lasts, and asks to try again', async () => {
    let runs = 0;
    const losing = async (tx: Transaction) => {
      runs++;
      try {
        await tx.run(`DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$`);
      } catch {
        throw new Error('the work has its own words for it');
      }
    };
    await assert.rejects(store.write(losing), { name: 'ApiError', code: Code.ABORTED, message: /try again/ });
    assert.equal(runs, 5);
  });

  it('is unavailable to the transaction that loses its connection, and to no other', async () => {
    const work = async (tx: Transaction) => {
      await tx.run(PUT, 'lost', 0);
      await tx.get(DIE);
    };
    await assert.rejects(store.write(work), saying(/database/));
    await assert.rejects(async () => store.reader.get(DIE), saying(/database/));
    await store.write(put('kept'));
    assert.deepEqual(await keys(), ['kept']);
  });

  it('survives the loss of a connection between two statements', async () => {
    const work = async (tx: Transaction) => {
      const row = await tx.get<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await store.reader.get('SELECT pg_terminate_backend($1::int, 5000)', row?.pid ?? 0);
      await store.ping(); // by the time of this answer the client knows that the other connection is gone
      await tx.run(PUT, 'lost', 0);
    };
    await assert.rejects(store.write(work), saying(/database/));
    assert.deepEqual(await keys(), []);
  });

  it('says that the outcome is unknown when the connection dies in the commit, and does not try again', async () => {
    await store.write(async (tx) => {
      await tx.run(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`);
      await tx.run(`CREATE CONSTRAINT TRIGGER die_late AFTER INSERT ON item
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`);
    });
    let runs = 0;
    const work = (tx: Transaction) => {
      runs++;
      return tx.run(PUT, 'lost', 0);
    };
    await assert.rejects(store.write(work), saying(/may have been made/));
    assert.equal(runs, 1);
    await store.write((tx) => tx.run('DROP TRIGGER die_late ON item'));
    assert.deepEqual(await keys(), []);
  });

  it('never shows the words of the driver', async () => {
    const error = await store.write((tx) => tx.get(DIE)).catch((e: unknown) => e);
    assert.ok(error instanceof ApiError);
    assert.doesNotMatch(error.message, /terminat|administrator|57P01/);
    assert.ok(error.cause instanceof Error, 'the log has them');
  });

  describe('with options of its own', () => {
    let other: Store;
    afterEach(() => other.close());

    it('hears of idle connections that broke, and replaces them', async () => {
      const lost = Promise.withResolvers<Error>();
      other = await openPostgres(database.url, { connections: 1, onLostConnection: lost.resolve });
      const row = await other.reader.get<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await store.reader.get('SELECT pg_terminate_backend($1::int)', row?.pid ?? 0);
      assert.ok((await lost.promise) instanceof Error);
      await other.ping();
    });

    it('is unavailable when a statement takes too long', async () => {
      other = await openPostgres(database.url, { statementTimeoutMs: 30 });
      await assert.rejects(async () => other.reader.get('SELECT pg_sleep(60)'), saying(/too long/));
      await assert.rejects(
        other.write((tx) => tx.get('SELECT pg_sleep(60)')),
        saying(/too long/),
      );
      await other.ping();
    });

    it('prepares each text once per connection', async () => {
      other = await openPostgres(database.url, { connections: 1 });
      for (let i = 0; i < 10; i++) await other.reader.get('SELECT n FROM item WHERE key = $1', `${i}`);
      const rows = await other.reader.all(`SELECT generic_plans + custom_plans AS runs FROM pg_prepared_statements
        WHERE statement LIKE 'SELECT n FROM item%'`);
      assert.deepEqual(
        rows.map(({ runs }) => runs),
        [10],
      );
    });

    it('serves many more callers than it has connections', async () => {
      other = await openPostgres(database.url, { connections: 2 });
      await Promise.all(Array.from({ length: 100 }, (_, i) => other.write(put(`k${i}`))));
      assert.equal((await keys()).length, 100);
    });
  });

  it('refuses a database that cannot hold every text', async () => {
    const name = 'latin';
    const admin = await openPostgres(database.url);
    // CREATE DATABASE runs in no transaction, which only the reader is.
    await admin.reader.get(
      `CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0`,
    );
    const url = database.url.replace(/test_\d+/, name);
    await assert.rejects(openPostgres(url), /encoding LATIN1, not UTF8/);
    await admin.reader.get(`DROP DATABASE ${name}`);
    await admin.close();
  });

  it('cannot be opened where there is none', async () => {
    await assert.rejects(openPostgres('postgres://127.0.0.1:1/none'), saying(/cannot be reached/));
    await assert.rejects(openPostgres(database.url.replace(/test_\d+/, 'none')), saying(/does not exist/));
  });
});
