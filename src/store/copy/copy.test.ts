import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, it } from 'node:test';
import pg from 'pg';
import { type FreshDatabase, freshDatabase } from '../../../test/support/postgres.ts';
import { openStore } from '../open.ts';
import { openPostgres } from '../postgres/postgres.ts';
import type { Store, Transaction } from '../store.ts';
import { type CopyObserver, type CopyResult, copyDatabase } from './copy.ts';
import { openCopySource } from './source.ts';
import { type CopyTarget, connectCopyTarget } from './target.ts';

const silent: CopyObserver = { step() {}, advance() {} };
const TARGET = 'the PostgreSQL database test';

const hexOrSame = (value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;

describe('copyDatabase', () => {
  let dataDir: string;
  let database: FreshDatabase;
  let store: Store;
  const path = (): string => join(dataDir, 'wharfinger.db');

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'wharf-copy-'));
    database = await freshDatabase();
    store = await openStore({ dataDir });
    await store.write(async (tx) => {
      for (let at = 0; at < 20; at++) await putResource(tx, `uid ${at}`, `ÄÖ "quoted" \\ {a,NULL} ${at} 🚢`);
      await tx.run("INSERT INTO setting (key, value) VALUES ('empty', '')");
    });
  });
  afterEach(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
    await database.drop();
  });

  let nextEvent = 0;
  /** Writes a row to tables with texts, numbers, bytes, JSON, null, generated ids and unique keys. */
  async function putResource(tx: Transaction, uid: string, text: string): Promise<void> {
    const keys = JSON.stringify({ name: text, b: '2', a: '1' });
    const bytes = Buffer.from(Array.from({ length: 300 }, (_, at) => at % 256));
    await tx.run(
      'INSERT INTO resource (kind, uid, parent, created, updated, keys, body, state) VALUES ($1, $2, $3, 1, 2, $4, $5, NULL)',
      ...['group', uid, '', keys, bytes],
    );
    await tx.run("INSERT INTO list (scope, kind, facet, n) VALUES ($1, 'group', '', 1)", text);
    await tx.run(
      `INSERT INTO outbox (event_id, type, subject, scope, time, audience, extensions)
        VALUES ($1, 't', $2, '', 1, '', '{}')`,
      ...[`event ${nextEvent++}`, uid],
    );
  }

  /** Runs a copy. `wrap` can make the target fail. */
  async function copy(
    wrap = (target: CopyTarget): CopyTarget => target,
  ): Promise<Awaited<ReturnType<typeof copyDatabase>>> {
    const source = openCopySource(path());
    const target = await connectCopyTarget(database.url);
    try {
      return await copyDatabase({
        ...{ source, target: wrap(target), targetName: TARGET, now: () => 1, observer: silent },
        migrateTarget: async () => (await openStore({ dataDir, databaseUrl: database.url })).close(),
      });
    } finally {
      source.close();
      await target.close();
    }
  }

  const rowsOf = async (db: Store, sql: string): Promise<unknown[]> =>
    (await db.reader.all(sql)).map((row) => Object.values(row).map(hexOrSame));
  const RESOURCES = 'SELECT uid, created, updated, body, state FROM resource ORDER BY uid';
  const LISTS = 'SELECT id, scope, n FROM list ORDER BY id';

  it('copies all rows, and lets generated ids continue', async () => {
    await store.write(async (tx) => void (await tx.run("DELETE FROM list WHERE scope LIKE '%19 🚢'")));
    const { tables } = (await copy()) as CopyResult;
    assert.deepEqual(
      tables.filter(({ rows }) => rows > 0).map(({ name, rows }) => [name, rows]),
      [
        ['list', 19],
        ['outbox', 20],
        ['resource', 20],
        ['setting', 2],
      ],
    );
    const copied = await openStore({ dataDir, databaseUrl: database.url });
    assert.deepEqual(await rowsOf(copied, RESOURCES), await rowsOf(store, RESOURCES));
    assert.deepEqual(await rowsOf(copied, LISTS), await rowsOf(store, LISTS));
    await copied.write((tx) => putResource(tx, 'new', 'new'));
    // The list with the highest id was deleted. Its id must not be used again.
    assert.equal((await copied.reader.get("SELECT id FROM list WHERE scope = 'new'"))?.id, 21);
    await copied.close();
  });

  it('is resumed after a failure of any step, while rows change', async () => {
    let failures = 0;
    let result: Awaited<ReturnType<typeof copy>> | undefined;
    while (result === undefined) {
      let left = failures * 3 + 1;
      const failing = (target: CopyTarget): CopyTarget =>
        new Proxy(target, {
          get:
            (object, name: keyof CopyTarget) =>
            async (...args: never[]) => {
              if (--left === 0) throw new Error('interrupted');
              return (object[name] as (...args: never[]) => unknown)(...args);
            },
        });
      try {
        result = await copy(failing);
      } catch (error) {
        assert.match(String(error), /interrupted/);
        failures++;
        if (openedMove()) continue;
        // Rows change their unique values, disappear, and come back with other ids.
        await store.write(async (tx) => {
          await tx.run("DELETE FROM list WHERE scope LIKE '%{a,NULL} 3 %'");
          await tx.run("DELETE FROM resource WHERE uid = 'uid 3'");
          await putResource(tx, 'uid 3', 'ÄÖ {a,NULL} 3 🚢');
          await tx.run("UPDATE resource SET updated = updated + 1, state = '{}' WHERE uid = 'uid 5'");
          await putResource(tx, `later ${failures}`, `later ${failures}`);
          if (failures > 2) await tx.run('DELETE FROM resource WHERE uid = $1', `later ${failures - 2}`);
        });
      }
    }
    assert.ok(failures > 12, `${failures} failures`);
    const copied = await openStore({ dataDir, databaseUrl: database.url });
    assert.deepEqual(await rowsOf(copied, RESOURCES), await rowsOf(store, RESOURCES));
    assert.deepEqual(await rowsOf(copied, LISTS), await rowsOf(store, LISTS));
    await copied.close();
  });

  function openedMove(): boolean {
    const source = openCopySource(path());
    const moved = source.movedTo() !== undefined;
    source.close();
    return moved;
  }

  it('copies rows that change during the copy, without a lost or a double one', async () => {
    let writes = 0;
    const writing = (target: CopyTarget): CopyTarget =>
      new Proxy(target, {
        get:
          (object, name: keyof CopyTarget) =>
          async (...args: never[]) => {
            const result = await (object[name] as (...args: never[]) => unknown)(...args);
            const isFrozen = ['readRows', 'count', 'continueIds', 'markVerified', 'finish', 'close'].includes(name);
            if (!isFrozen && writes < 400) {
              for (let at = 0; at < 10; at++)
                await store.write((tx) => putResource(tx, `w ${++writes}`, `w ${writes}`));
              await store.write(
                async (tx) => void (await tx.run('DELETE FROM resource WHERE uid = $1', `w ${writes - 5}`)),
              );
            }
            return result;
          },
      });
    await copy(writing);
    assert.ok(writes > 100);
    const copied = await openStore({ dataDir, databaseUrl: database.url });
    assert.deepEqual(await rowsOf(copied, RESOURCES), await rowsOf(store, RESOURCES));
    await copied.close();
  });

  it('makes every server refuse an unfinished copy and a database that was moved', async () => {
    const interrupted = (target: CopyTarget): CopyTarget => ({
      ...target,
      analyze: () => Promise.reject(new Error('interrupted')),
    });
    await assert.rejects(copy(interrupted), /interrupted/);
    await assert.rejects(openStore({ dataDir, databaseUrl: database.url }), {
      message: /a copy to this database has not finished: run 'wharf db copy' again, which resumes it$/,
    });
    // What 0.1.0 checks: it refuses an id above 9.
    const other = await openPostgres(database.url);
    assert.ok(Number((await other.reader.get('SELECT max(id) AS id FROM migration'))?.id) > 9);
    await other.close();
    await copy();
    await assert.rejects(openStore({ dataDir }), {
      message: /wharfinger\.db: this database was moved to the PostgreSQL database test: set WHARF_DATABASE_URL to /,
    });
    await assert.rejects(copy(), /the database was already moved to the PostgreSQL database test/);
  });

  it('makes a running server refuse writes after the move, and not reads', async () => {
    await copy();
    for (const sql of [
      "INSERT INTO setting (key, value) VALUES ('x', '')",
      "UPDATE setting SET value = 'x'",
      'DELETE FROM resource',
    ]) {
      await assert.rejects(
        store.write(async (tx) => void (await tx.run(sql))),
        {
          message: 'Unavailable: the server moves to another database; try again later',
        },
      );
    }
    assert.equal((await rowsOf(store, RESOURCES)).length, 20);
  });

  it('can be undone, before and after the move', async () => {
    const undo = async (): Promise<void> => {
      const source = openCopySource(path());
      await source.undo();
      source.close();
    };
    const schema = () => {
      const db = new DatabaseSync(path());
      const names = db
        .prepare('SELECT name FROM sqlite_schema ORDER BY name')
        .all()
        .map(({ name }) => name);
      db.close();
      return names;
    };
    const before = schema();
    const interrupted = (target: CopyTarget) => ({
      ...target,
      analyze: () => Promise.reject(new Error('interrupted')),
    });
    await assert.rejects(copy(interrupted), /interrupted/);
    await undo();
    assert.deepEqual(schema(), before);
    await assert.rejects(copy(), /has an unfinished copy of another database, or one that was undone: drop it/);
    await database.drop();
    database = await freshDatabase();
    await copy();
    await undo();
    assert.deepEqual(schema(), before);
    await store.write((tx) => putResource(tx, 'again', 'again'));
    await (await openStore({ dataDir })).close();
  });

  it('refuses a target that is not empty', async () => {
    await (await openStore({ dataDir, databaseUrl: database.url })).close();
    await assert.rejects(copy(), /the PostgreSQL database test is not empty: create an empty database/);
  });

  it('finds rows that differ, and does not move the source then', async () => {
    const damages = [
      "UPDATE resource SET updated = 7 WHERE uid = 'uid 4'",
      "UPDATE resource SET keys = '{}' WHERE uid = 'uid 4'",
      "INSERT INTO resource SELECT kind, 'zz', parent, created, updated, keys, body, state FROM resource WHERE uid = 'uid 1'",
    ];
    for (const sql of damages) {
      const damaging = (target: CopyTarget): CopyTarget => ({
        ...target,
        async analyze() {
          const client = new pg.Client(database.url);
          await client.connect();
          await client.query(sql);
          await client.end();
        },
      });
      await assert.rejects(copy(damaging), /the table resource is not the same in both databases/, sql);
      const source = openCopySource(path());
      assert.equal(source.movedTo(), undefined);
      await source.undo();
      source.close();
      await database.drop();
      database = await freshDatabase();
    }
  });
});
