import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type DataLocation, databases } from '../../test/support/databases.ts';
import { postgresDialect, sqliteDialect } from './dialect.ts';
import { extendedMigrations } from './migrations.killed.testing.ts';
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
  ['organization_storage', 'period_count', 'upload'],
  ['sink_address'],
  ['former_organization_name', 'organization_member'],
];
const TABLES = ADDED.flat().sort();
/** The possible sets of tables after a kill: each migration was applied completely or not at all. */
const COMPLETE_SCHEMAS = [
  [],
  ...ADDED.map((_, i) =>
    ADDED.slice(0, i + 1)
      .flat()
      .sort(),
  ),
].map(String);

/** Migrates in another process and returns whether it finished. It is killed when `kill` resolves to true. */
async function migrateInProcess(target: string, killAfter: number, kill = async (): Promise<boolean> => false) {
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
    let home: DataLocation;
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
    /** Applies the migrations that the killed processes did not, and checks that each was applied once. */
    const assertCompletes = async (): Promise<void> => {
      const store = await open();
      const found = String(await tables(store));
      assert.ok(COMPLETE_SCHEMAS.includes(found), `incomplete schema: ${found}`);
      await migrate(store, dialect, extendedMigrations);
      assert.deepEqual(await tables(store), TABLES);
      const ids = (await store.reader.all('SELECT id FROM migration ORDER BY id')).map(({ id }) => id);
      assert.deepEqual(
        ids,
        extendedMigrations.map(({ id }) => id),
      );
      assert.equal(
        (await store.reader.get("SELECT count(extra) + count(*) AS n FROM setting WHERE key = 'filled'"))?.n,
        1,
      );
      await store.close();
    };

    beforeEach(async () => {
      home = await database.createDataLocation();
      target = home.databaseUrl ?? join(home.dataDir, 'wharfinger.db');
    });
    afterEach(() => home.remove());

    it('are applied once; a second start applies none', async () => {
      const store = await open();
      assert.deepEqual(await migrate(store, dialect), migrations);
      assert.deepEqual(await tables(store), TABLES);
      assert.deepEqual(await migrate(store, dialect), []);
      await store.close();
      await (await openStore(home)).close();
    });

    it('keep the people visible who had role bindings before', async () => {
      const store = await open();
      const [organization, person] = ['a'.repeat(40), 'b'.repeat(40)];
      const machine = `${organization}/${'c'.repeat(16)}`;
      await migrate(
        store,
        dialect,
        migrations.filter(({ id }) => id < 9),
      );
      await store.write(async (tx) => {
        for (const [identity, suffix] of [
          [person, '1'],
          [person, '2'],
          [machine, '3'],
        ] as const) {
          const uid = `${organization}/${suffix.repeat(16)}`;
          const sql = 'INSERT INTO reference (kind, field, value, uid) VALUES ($1, $2, $3, $4)';
          await tx.run(sql, 'role binding', 'identity', identity, uid);
        }
      });
      await migrate(store, dialect);
      const members = await store.reader.all('SELECT organization, identity FROM organization_member');
      assert.deepEqual(
        members.map((member) => ({ ...member })),
        [{ organization, identity: person }],
      );
      await store.close();
    });

    it('are applied once when several servers start concurrently', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, () => open()));
      const applied = await Promise.all(stores.map((store) => migrate(store, dialect, extendedMigrations)));
      assert.deepEqual(
        applied.flat().sort((a, b) => a.id - b.id),
        extendedMigrations,
      );
      await Promise.all(stores.map((store) => store.close()));
      await assertCompletes();
    });

    it('are applied once when several processes start concurrently', async () => {
      assert.deepEqual(await Promise.all([migrateInProcess(target, 0), migrateInProcess(target, 0)]), [true, true]);
      await assertCompletes();
    });

    it('refuse a database of a newer version, and do not change it', async () => {
      const store = await open();
      await migrate(store, dialect, extendedMigrations);
      await store.close();
      await assert.rejects(openStore(home), {
        message:
          /^cannot open the .*: the database was written by a newer version of Wharfinger \(schema 1002; .*\): [^\n]*$/,
      });
      await assertCompletes();
    });

    it('are rolled back completely when a statement fails', async () => {
      const store = await open();
      const broken = { id: 1000, name: 'broken', up: () => ['CREATE TABLE half (a TEXT)', 'NONSENSE'] };
      await assert.rejects(migrate(store, dialect, [...migrations, broken]));
      assert.deepEqual(await tables(store), TABLES);
      assert.deepEqual(await migrate(store, dialect, extendedMigrations), extendedMigrations.slice(migrations.length));
      await store.close();
    });

    it('survive a kill after any statement', async () => {
      // PostgreSQL itself is not killed, so a few points suffice there.
      const step = isUrl ? 4 : 1;
      let kills = 0;
      for (let statements = 1; !(await migrateInProcess(target, statements)); statements += step) {
        kills++;
        const store = await open();
        const found = String(await tables(store));
        assert.ok(COMPLETE_SCHEMAS.includes(found), `incomplete schema: ${found}`);
        await store.close();
      }
      assert.ok(kills >= 3);
      await assertCompletes();
    });

    it('survive a kill at a random time', async () => {
      for (let run = 0; run < (isUrl ? 2 : 8); run++) {
        const other = await database.createDataLocation();
        const file = other.databaseUrl ?? join(other.dataDir, 'wharfinger.db');
        await migrateInProcess(file, 0, async () => {
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

it('migrations are numbered from 1', () => {
  assert.deepEqual(
    migrations.map(({ id }) => id),
    migrations.map((_, at) => at + 1),
  );
});
