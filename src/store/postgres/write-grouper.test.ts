import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type FreshDatabase, freshDatabase } from '../../../test/support/postgres.ts';
import { Code } from '../../base/errors.ts';
import type { BulkInsert } from '../bulk-insert.ts';
import { type Store, type Transaction, UniqueViolation } from '../store.ts';
import { openPostgres } from './postgres.ts';

const ITEMS: BulkInsert = { into: 'item', columns: { key: 'text', n: 'integer' } };
const CLAIMS: BulkInsert = { ...ITEMS, conflict: 'skip', returning: ['key'] };
const COUNTS: BulkInsert = {
  into: 'counter',
  columns: { name: 'text', n: 'integer' },
  conflict: { key: ['name'], sum: 'n' },
  returning: ['id', 'name'],
};
const DIE = 'SELECT pg_terminate_backend(pg_backend_pid())';
const MANY = Array.from({ length: 40 }, (_, at) => at);

describe('append-only writes to PostgreSQL', () => {
  let database: FreshDatabase;
  let store: Store;
  let other: Store;
  const append = <T>(work: (tx: Transaction) => T, to = store) => to.write(work, { appendOnly: true });
  const keys = async (): Promise<unknown[]> =>
    (await other.reader.all('SELECT key FROM item ORDER BY n')).map(({ key }) => key);
  const transactions = async (): Promise<number> =>
    (await other.reader.all('SELECT DISTINCT xmin::text AS id FROM item')).length;

  before(async () => {
    database = await freshDatabase();
    store = await openPostgres(database.url);
    other = await openPostgres(database.url);
    await store.write(async (tx) => {
      await tx.run('CREATE TABLE item (key TEXT COLLATE "C" PRIMARY KEY, n BIGINT NOT NULL)');
      await tx.run(`CREATE TABLE counter (id BIGINT GENERATED ALWAYS AS IDENTITY, name TEXT COLLATE "C" PRIMARY KEY,
        n BIGINT NOT NULL)`);
    });
  });
  beforeEach(() => store.write((tx) => tx.run('TRUNCATE item, counter')));
  after(async () => {
    await Promise.all([store.close(), other.close()]);
    await database.drop();
  });

  it('share transactions when they are concurrent, and each gets its own result', async () => {
    const results = MANY.map((n) =>
      append(async (tx) => {
        await tx.get('SELECT 1 AS one');
        tx.insertUnawaited(ITEMS, [`k${n}`, n]);
        return n;
      }),
    );
    assert.deepEqual(await Promise.all(results), MANY);
    assert.equal((await keys()).length, MANY.length);
    assert.ok((await transactions()) <= 4, `${await transactions()} transactions`);
  });

  it('see their own rows, and add up sums', async () => {
    const found = await Promise.all(
      MANY.map((n) =>
        append(async (tx) => {
          const rows = await tx.insert<{ id: number; name: string }>(COUNTS, ['all', 1, `of ${n % 4}`, 2]);
          tx.insertUnawaited(ITEMS, [`k${n}`, n]);
          const own = await tx.get('SELECT n FROM item WHERE key = $1', `k${n}`);
          const id = rows.find(({ name }) => name === 'all')?.id;
          assert.ok(rows.some(({ name }) => name === `of ${n % 4}`));
          return `${own?.n} ${id}`;
        }),
      ),
    );
    const counters = await other.reader.all<{ id: number; name: string; n: number }>(
      'SELECT id, name, n FROM counter ORDER BY name',
    );
    const [all, ...parts] = counters;
    assert.deepEqual(
      found,
      MANY.map((n) => `${n} ${all?.id}`),
    );
    assert.equal(all?.n, 40);
    assert.deepEqual(
      parts.map(({ n }) => n),
      [20, 20, 20, 20],
    );
  });

  it('fail without failing the others, before or after they have written', async () => {
    const results = await Promise.allSettled(
      MANY.map((n) =>
        append(async (tx) => {
          await tx.get('SELECT 1 AS one');
          if (n % 10 === 3) throw new Error(`early ${n}`);
          await tx.insert(ITEMS, [`k${n}`, n]);
          if (n % 10 === 7) throw new Error(`late ${n}`);
        }),
      ),
    );
    const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.message] : []));
    const expected = MANY.flatMap((n) => (n % 10 === 3 ? [`early ${n}`] : n % 10 === 7 ? [`late ${n}`] : []));
    assert.deepEqual(failed, expected);
    assert.equal((await keys()).length, MANY.length - expected.length);
    assert.ok((await transactions()) < 20, 'the others still share transactions');
  });

  it('run again without one that failed, also if the group was slow', async () => {
    const results = await Promise.allSettled(
      [0, 1, 2].map((n) =>
        append(async (tx) => {
          await tx.insert(ITEMS, [`k${n}`, n]);
          if (n === 1) await tx.get('SELECT pg_sleep(0.15)');
          if (n === 1) throw new Error('late');
        }),
      ),
    );
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(await keys(), ['k0', 'k2']);
  });

  it('get the errors of their own rows only, also of unawaited ones', async () => {
    await store.write((tx) => tx.insert(ITEMS, ['k5', 0]));
    for (const kind of ['unawaited', 'awaited'] as const) {
      const results = await Promise.allSettled(
        MANY.map((n) =>
          append(async (tx) => {
            if (kind === 'unawaited') tx.insertUnawaited(ITEMS, [`k${n}`, n]);
            else await tx.insert(ITEMS, [`k${n}`, n]);
          }),
        ),
      );
      const failed = results.flatMap((result, n) => (result.status === 'rejected' ? [[n, result.reason]] : []));
      assert.ok(failed.every(([, reason]) => reason instanceof UniqueViolation));
      assert.deepEqual(
        failed.map(([n]) => n),
        [5],
      );
      assert.equal((await keys()).length, MANY.length);
      await store.write((tx) => tx.run('DELETE FROM item WHERE key <> $1', 'k5'));
    }
  });

  it('insert a key exactly once with `skip`, and only that write gets it returned', async () => {
    const claims = await Promise.all(
      MANY.map((n) =>
        append(async (tx) => {
          const rows = await tx.insert<{ key: string }>(CLAIMS, [`k${n % 10}`, n, `own ${n}`, n]);
          return rows.some(({ key }) => key === `k${n % 10}`) && rows.some(({ key }) => key === `own ${n}`);
        }),
      ),
    );
    assert.equal(claims.filter(Boolean).length, 10);
    assert.equal((await keys()).length, 50);
  });

  it('run alone when they lock and change a row, so that no update is lost', async () => {
    await store.write((tx) => tx.insert(ITEMS, ['n', 0]));
    await Promise.all(
      MANY.map((n) =>
        append(async (tx) => {
          if (n % 2 === 0) tx.insertUnawaited(ITEMS, [`k${n}`, -1 - n]);
          const row = await tx.forUpdate.get<{ n: number }>('SELECT n FROM item WHERE key = $1', 'n');
          await tx.run('UPDATE item SET n = $1 WHERE key = $2', (row?.n ?? 0) + 1, 'n');
        }),
      ),
    );
    assert.equal((await other.reader.get("SELECT n FROM item WHERE key = 'n'"))?.n, 40);
    assert.equal((await keys()).length, 21);
  });

  const notAppendOnly: Record<string, (tx: Transaction, n: number) => unknown> = {
    run: (tx, n) => tx.run("UPDATE item SET n = n + $1 WHERE key = 'n'", n),
    runUnawaited: (tx, n) => tx.runUnawaited("UPDATE item SET n = n + $1 WHERE key = 'n'", n),
    runReturning: (tx, n) => tx.runReturning("UPDATE item SET n = n + $1 WHERE key = 'n' RETURNING n", n),
    forUpdate: (tx) => tx.forUpdate.get("SELECT n FROM item WHERE key = 'n'"),
    forUpdateSkipLocked: (tx) => tx.forUpdateSkipLocked.all("SELECT n FROM item WHERE key = 'n'"),
  };
  for (const [method, call] of Object.entries(notAppendOnly)) {
    for (const when of ['before', 'after'] as const) {
      it(`run again alone when they call ${method} ${when} they have inserted`, async () => {
        await store.write((tx) => tx.insert(ITEMS, ['n', -1000]));
        const runs = MANY.map(() => 0);
        const results = MANY.map((n) =>
          append(async (tx) => {
            runs[n] = (runs[n] ?? 0) + 1;
            if (when === 'before' && n === 7) await call(tx, 1);
            await tx.insert(ITEMS, [`k${n}`, n]);
            if (when === 'after' && n === 7) await call(tx, 1);
            return n;
          }),
        );
        assert.deepEqual(await Promise.all(results), MANY);
        assert.deepEqual(await keys(), ['n', ...MANY.map((n) => `k${n}`)]);
        assert.ok((runs[7] ?? 0) > 1, 'the first run was rolled back');
        const changes = await other.reader.get<{ n: number }>("SELECT n FROM item WHERE key = 'n'");
        assert.equal(changes?.n, method.startsWith('run') ? -999 : -1000, 'the call takes effect once');
        const count = await other.reader.get<{ n: number }>(
          "SELECT count(*) AS n FROM item WHERE xmin = (SELECT xmin FROM item WHERE key = 'k7') AND key <> 'n'",
        );
        assert.equal(count?.n, 1, 'no other write is in its transaction');
        assert.ok((await transactions()) < 20, 'the others still share transactions');
      });
    }
  }

  it('share a transaction when they lock the same row with forShare', async () => {
    await store.write((tx) => tx.insert(ITEMS, ['parent', -1]));
    let runs = 0;
    await Promise.all(
      MANY.map((n) =>
        append(async (tx) => {
          runs++;
          assert.ok(await tx.forShare.get("SELECT key FROM item WHERE key = 'parent'"));
          await tx.insert(ITEMS, [`k${n}`, n]);
        }),
      ),
    );
    assert.equal(runs, MANY.length);
    assert.ok((await transactions()) <= 5, `${await transactions()} transactions`);
  });

  it('replace the value of a key that several of them write', async () => {
    const replacing: BulkInsert = { ...ITEMS, conflict: { key: ['key'], replace: 'n' } };
    let runs = 0;
    await Promise.all(
      MANY.map((n) =>
        append((tx) => {
          runs++;
          tx.insertUnawaited(replacing, ['version', n, `k${n}`, n]);
        }),
      ),
    );
    assert.equal(runs, MANY.length);
    const version = await other.reader.get<{ n: number }>("SELECT n FROM item WHERE key = 'version'");
    assert.ok(MANY.includes(version?.n ?? -1));
    assert.equal((await keys()).length, MANY.length + 1);
  });

  it('do not wait long for one of them that waits for a lock', async () => {
    await store.write((tx) => tx.insert(ITEMS, ['locked', 0]));
    const release = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const locking = other.write(async (tx) => {
      await tx.forUpdate.get("SELECT key FROM item WHERE key = 'locked'");
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    let isDone = false;
    const blocked = append(async (tx) => {
      await tx.forShare.get("SELECT key FROM item WHERE key = 'locked'");
      tx.insertUnawaited(ITEMS, ['waited', 99]);
    }).then(() => {
      isDone = true;
    });
    await Promise.all(MANY.map((n) => append((tx) => tx.insert(ITEMS, [`k${n}`, n]))));
    assert.equal(isDone, false);
    release.resolve();
    await Promise.all([locking, blocked]);
    assert.equal((await keys()).length, MANY.length + 2);
  });

  it('survive the loss of their connection, except for the one that causes it', async () => {
    const results = await Promise.allSettled(
      MANY.map((n) =>
        append(async (tx) => {
          await tx.insert(ITEMS, [`k${n}`, n]);
          if (n === 7) await tx.get(DIE);
        }),
      ),
    );
    const lost = results.flatMap((result, n) => (result.status === 'rejected' ? [[n, result.reason.code]] : []));
    assert.deepEqual(lost, [[7, Code.UNAVAILABLE]]);
    assert.deepEqual(
      await keys(),
      MANY.filter((n) => n !== 7).map((n) => `k${n}`),
    );
  });

  it('report an unknown outcome when the connection breaks during the commit, and do not run again', async () => {
    await store.write(async (tx) => {
      await tx.run(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`);
      await tx.run(`CREATE CONSTRAINT TRIGGER die_late AFTER INSERT ON item
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()`);
    });
    let runs = 0;
    const results = await Promise.allSettled(
      MANY.map((n) =>
        append(async (tx) => {
          runs++;
          await tx.insert(ITEMS, [`k${n}`, n]);
        }),
      ),
    );
    await store.write((tx) => tx.run('DROP TRIGGER die_late ON item'));
    for (const result of results) {
      assert.match(result.status === 'rejected' ? result.reason.message : 'committed', /may have been made/);
    }
    assert.equal(runs, MANY.length);
    assert.deepEqual(await keys(), []);
  });

  it('of two servers add up their sums', async () => {
    const count = (on: Store, n: number) =>
      append(async (tx) => {
        await tx.get('SELECT 1 AS one');
        await tx.insert(COUNTS, ['a', 1, 'b', 1, `c${n % 3}`, 1]);
        tx.insertUnawaited(ITEMS, [`k${n}`, n]);
      }, on);
    await Promise.all(Array.from({ length: 200 }, (_, n) => count(n % 2 === 0 ? store : other, n)));
    assert.equal((await keys()).length, 200);
    const rows = await other.reader.all("SELECT sum(n) AS n FROM counter WHERE name IN ('a', 'b') GROUP BY name");
    assert.deepEqual(
      rows.map(({ n }) => n),
      [200, 200],
    );
  });
});
