import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { databases, type Home } from '../../test/support/databases.ts';
import { postgresDialect, sqliteDialect } from './dialect.ts';
import { lengthened } from './migrations.killed.testing.ts';
import { migrate, migrations } from './migrations.ts';
import { openStore } from './open.ts';
import { openPostgres } from './postgres/postgres.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

const victim = fileURLToPath(new URL('./migrations.killed.testing.ts', import.meta.url));
/** The tables that each migration adds. */
const ADDED = [
  ['entry', 'list', 'migration', 'natural_key', 'outbox', 'reference', 'resource', 'setting'],
  ['refresh_family', 'signing_key'],
  ['blob_link', 'manifest', 'manifest_link', 'tag_history', 'tag_target'],
  ['sink', 'delivery'],
  ['vulnerability_report'],
];
const TABLES = ADDED.flat().sort();
/** What there may be after a kill: each migration as a whole or not at all. */
const WHOLE = [
  [],
  ...ADDED.map((_, i) =>
    ADDED.slice(0, i + 1)
      .flat()
      .sort(),
  ),
].map(String);

/** Migrates in a process of its own; answers whether it got to the end. `kill` decides when it is killed from outside. */
async function migrateAndDie(target: string, killAfter: number, kill = async (): Promise<boolean> => false) {
  const child = spawn(process.execPath, [victim, target, String(killAfter)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<boolean>((resolve) => {
    child.on('exit', (code, signal) => {
      assert.ok(code === 0 || signal === 'SIGKILL', `ended by ${code ?? signal}`);
      resolve(code === 0);
    });
  });
  child.stdout.once('data', async () => {
    if (await kill()) child.kill('SIGKILL');
  });
  return ended;
}

for (const database of databases) {
  describe(`migrations on ${database.name}`, () => {
    let home: Home;
    let target: string;
    const isUrl = database.name === 'PostgreSQL';
    const dialect = isUrl ? postgresDialect : sqliteDialect;
    const open = (): Promise<Store> => (isUrl ? openPostgres(target) : openSqlite(target));
    const tables = async (store: Store): Promise<unknown[]> => {
      const sql = isUrl
        ? `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename COLLATE "C"`
        : `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;
      return (await store.reader.all(sql)).map(({ name }) => name);
    };
    /** Finishes what the victims left and checks that each migration took effect once. */
    const assertCompletes = async (): Promise<void> => {
      const store = await open();
      const found = String(await tables(store));
      assert.ok(WHOLE.includes(found), `half a schema: ${found}`);
      await migrate(store, dialect, lengthened);
      assert.deepEqual(await tables(store), TABLES);
      const ids = (await store.reader.all('SELECT id FROM migration ORDER BY id')).map(({ id }) => id);
      assert.deepEqual(
        ids,
        lengthened.map(({ id }) => id),
      );
      assert.equal(
        (await store.reader.get("SELECT count(extra) + count(*) AS n FROM setting WHERE key = 'filled'"))?.n,
        1,
      );
      await store.close();
    };

    beforeEach(async () => {
      home = await database.home();
      target = home.databaseUrl ?? join(home.dataDir, 'wharfinger.db');
    });
    afterEach(() => home.remove());

    it('apply once; a second start has nothing to do', async () => {
      const store = await open();
      assert.deepEqual(await migrate(store, dialect), migrations);
      assert.deepEqual(await tables(store), TABLES);
      assert.deepEqual(await migrate(store, dialect), []);
      await store.close();
      await (await openStore(home)).close();
    });

    it('apply once when several servers start together', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, () => open()));
      const applied = await Promise.all(stores.map((store) => migrate(store, dialect, lengthened)));
      assert.deepEqual(
        applied.flat().sort((a, b) => a.id - b.id),
        lengthened,
      );
      await Promise.all(stores.map((store) => store.close()));
      await assertCompletes();
    });

    it('apply once when several processes start together', async () => {
      assert.deepEqual(await Promise.all([migrateAndDie(target, 0), migrateAndDie(target, 0)]), [true, true]);
      await assertCompletes();
    });

    it('refuse a database that a newer version wrote, and leave it alone', async () => {
      const store = await open();
      await migrate(store, dialect, lengthened);
      await store.close();
      await assert.rejects(openStore(home), {
        message:
          /^cannot open the .*: the database was written by a newer version of Wharfinger \(schema 1002; .*\): [^\n]*$/,
      });
      await assertCompletes();
    });

    it('keep nothing of one that fails', async () => {
      const store = await open();
      const broken = { id: 1000, name: 'broken', up: () => ['CREATE TABLE half (a TEXT)', 'NONSENSE'] };
      await assert.rejects(migrate(store, dialect, [...migrations, broken]));
      assert.deepEqual(await tables(store), TABLES);
      assert.deepEqual(await migrate(store, dialect, lengthened), lengthened.slice(migrations.length));
      await store.close();
    });

    it('survive a kill after any statement', async () => {
      // A killed process leaves nothing to a PostgreSQL that lives on, so there some points will do.
      const step = isUrl ? 4 : 1;
      let deaths = 0;
      for (let statements = 1; !(await migrateAndDie(target, statements)); statements += step) {
        deaths++;
        const store = await open();
        const found = String(await tables(store));
        assert.ok(WHOLE.includes(found), `half a schema: ${found}`);
        await store.close();
      }
      assert.ok(deaths >= 3);
      await assertCompletes();
    });

    it('survive a kill at any moment', async () => {
      for (let round = 0; round < (isUrl ? 2 : 8); round++) {
        const other = await database.home();
        const file = other.databaseUrl ?? join(other.dataDir, 'wharfinger.db');
        await migrateAndDie(file, 0, async () => {
          await sleep(Math.random() * 12);
          return true;
        });
        target = file;
        await assertCompletes();
        await other.remove();
      }
    });
  });
}

it('migrations count up', () => {
  assert.deepEqual(
    migrations.map(({ id }) => id),
    migrations.map((_, index) => index + 1),
  );
});
