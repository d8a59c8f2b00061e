import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { type FreshDatabase, freshDatabase } from '../../../test/support/postgres.ts';
import { ApiError, Code } from '../../base/errors.ts';
import type { Store, Transaction } from '../store.ts';
import { openPostgres } from './postgres.ts';

const PUT = 'INSERT INTO item (key, n) VALUES ($1, $2)';
const put = (key: string) => (tx: Transaction) => tx.run(PUT, key, 0);
const DIE = 'SELECT pg_terminate_backend(pg_backend_pid())';
const unavailable = (message: RegExp) => ({ name: 'ApiError', code: Code.UNAVAILABLE, message });

describe('PostgreSQL', () => {
  let database: FreshDatabase;
  let store: Store;
  const keys = async (): Promise<unknown[]> =>
    (await store.reader.all('SELECT key FROM item ORDER BY key')).map(({ key }) => key);

  before(async () => {
    database = await freshDatabase();
    // PostgreSQL checks for deadlocks after 10 ms, not after a second.
    store = await openPostgres(`${database.url}&options=${encodeURIComponent('-c deadlock_timeout=10ms')}`);
    await store.write((tx) => tx.run('CREATE TABLE item (key TEXT PRIMARY KEY, n BIGINT NOT NULL)'));
  });
  beforeEach(() => store.write((tx) => tx.run('DELETE FROM item')));
  after(async () => {
    await store.close();
    await database.drop();
  });

  it('retries a transaction that a deadlock ended', async () => {
    await Promise.all([store.write(put('a')), store.write(put('b'))]);
    const bothHaveOne = Promise.withResolvers<void>();
    let runs = 0;
    const inOrder = (first: string, second: string) =>
      store.write(async (tx) => {
        const add = (key: string) => tx.run('UPDATE item SET n = n + 1 WHERE key = $1', key);
        await add(first);
        if (++runs === 2) bothHaveOne.resolve();
        await bothHaveOne.promise;
        await add(second);
      });
    await Promise.all([inOrder('a', 'b'), inOrder('b', 'a')]);
    assert.equal(runs, 3, 'one of them ran twice');
    assert.equal((await store.reader.get('SELECT sum(n) AS total FROM item'))?.total, 4);
  });

  describe('locks rows', () => {
    const FIND = 'SELECT key, n FROM item WHERE key = $1';
    const change = 'UPDATE item SET n = n + 1 WHERE key = $1';
    /** Runs `meanwhile` while another transaction has locked row `a` by `lock`. */
    const whileLocked = async (lock: 'forShare' | 'forUpdate', meanwhile: () => Promise<void>) => {
      await Promise.all([store.write(put('a')), store.write(put('b'))]);
      await store.write(async (tx) => {
        await tx[lock].get(FIND, 'a');
        await meanwhile();
      });
    };
    const withTimeout = async (work: (tx: Transaction) => unknown) =>
      store.write(async (tx) => {
        await tx.run('SET LOCAL lock_timeout = 20');
        await work(tx);
      });

    it('against changes but not against other share locks with forShare', () =>
      whileLocked('forShare', async () => {
        await withTimeout((tx) => tx.forShare.get(FIND, 'a'));
        await withTimeout((tx) => tx.run(change, 'b'));
        await assert.rejects(
          withTimeout((tx) => tx.run(change, 'a')),
          unavailable(/in time/),
        );
        await assert.rejects(
          withTimeout((tx) => tx.forUpdate.get(FIND, 'a')),
          unavailable(/in time/),
        );
      }));

    it('against changes and all other locks with forUpdate', () =>
      whileLocked('forUpdate', async () => {
        assert.ok(await store.reader.get(FIND, 'a'), 'a read without a lock does not wait');
        for (const lock of ['forShare', 'forUpdate'] as const) {
          await withTimeout((tx) => tx[lock].get(FIND, 'b'));
          await assert.rejects(
            withTimeout((tx) => tx[lock].get(FIND, 'a')),
            unavailable(/in time/),
          );
        }
      }));

    it('that are not locked yet with forUpdateSkipLocked', () =>
      whileLocked('forUpdate', async () => {
        await withTimeout(async (tx) => {
          const rows = await tx.forUpdateSkipLocked.all('SELECT key FROM item ORDER BY key');
          assert.deepEqual(rows, [{ key: 'b' }]);
          assert.equal(await tx.forUpdateSkipLocked.get(FIND, 'a'), undefined);
        });
      }));
  });

  it('gives up after five conflicts, with an error that says to try again', async () => {
    let runs = 0;
    const losing = async (tx: Transaction) => {
      runs++;
      try {
        await tx.run(`DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$`);
      } catch {
        throw new Error('replaced by the work');
      }
    };
    await assert.rejects(store.write(losing), { name: 'ApiError', code: Code.ABORTED, message: /try again/ });
    assert.equal(runs, 5);
  });

  it('is unavailable for the transaction that loses its connection, and for no other', async () => {
    const work = async (tx: Transaction) => {
      await tx.run(PUT, 'lost', 0);
      await tx.get(DIE);
    };
    await assert.rejects(store.write(work), unavailable(/database/));
    await assert.rejects(async () => store.reader.get(DIE), unavailable(/database/));
    await store.write(put('kept'));
    assert.deepEqual(await keys(), ['kept']);
  });

  it('recovers from the loss of a connection between two statements', async () => {
    const work = async (tx: Transaction) => {
      const row = await tx.get<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await store.reader.get('SELECT pg_terminate_backend($1::int, 5000)', row?.pid ?? 0);
      await store.ping(); // when this returns, the client has noticed that the other connection is closed
      await tx.run(PUT, 'lost', 0);
    };
    await assert.rejects(store.write(work), unavailable(/database/));
    assert.deepEqual(await keys(), []);
  });

  it('reports an unknown outcome when the connection breaks during the commit, and does not retry', async () => {
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
    await assert.rejects(store.write(work), unavailable(/may have been made/));
    assert.equal(runs, 1);
    await store.write((tx) => tx.run('DROP TRIGGER die_late ON item'));
    assert.deepEqual(await keys(), []);
  });

  it('does not show the message of the driver', async () => {
    const error = await store.write((tx) => tx.get(DIE)).catch((e: unknown) => e);
    assert.ok(error instanceof ApiError);
    assert.doesNotMatch(error.message, /terminat|administrator|57P01/);
    assert.ok(error.cause instanceof Error, 'it is the cause, for the log');
  });

  describe('with options', () => {
    let other: Store;
    afterEach(() => other.close());

    it('reports idle connections that broke, and replaces them', async () => {
      const lost = Promise.withResolvers<Error>();
      other = await openPostgres(database.url, { connections: 1, onLostConnection: lost.resolve });
      const row = await other.reader.get<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await store.reader.get('SELECT pg_terminate_backend($1::int)', row?.pid ?? 0);
      assert.ok((await lost.promise) instanceof Error);
      await other.ping();
    });

    it('is unavailable when a statement takes too long', async () => {
      other = await openPostgres(database.url, { statementTimeoutMs: 30 });
      await assert.rejects(async () => other.reader.get('SELECT pg_sleep(60)'), unavailable(/in time/));
      await assert.rejects(
        other.write((tx) => tx.get('SELECT pg_sleep(60)')),
        unavailable(/in time/),
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

    it('runs many more writes than it has connections', async () => {
      other = await openPostgres(database.url, { connections: 2 });
      await Promise.all(Array.from({ length: 100 }, (_, i) => other.write(put(`k${i}`))));
      assert.equal((await keys()).length, 100);
    });
  });

  it('refuses a database with another encoding than UTF-8', async () => {
    const name = 'latin';
    const admin = await openPostgres(database.url);
    // CREATE DATABASE cannot run in a transaction, so it runs through the reader.
    await admin.reader.get(
      `CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0`,
    );
    const url = database.url.replace(/test_\d+/, name);
    await assert.rejects(openPostgres(url), /encoding LATIN1, not UTF8/);
    await admin.reader.get(`DROP DATABASE ${name}`);
    await admin.close();
  });

  it('cannot be opened if the server or the database does not exist', async () => {
    await assert.rejects(openPostgres('postgres://127.0.0.1:1/none'), unavailable(/cannot be reached/));
    await assert.rejects(openPostgres(database.url.replace(/test_\d+/, 'none')), unavailable(/does not exist/));
  });
});
