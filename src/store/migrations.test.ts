import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type DataLocation, databases } from '../../test/support/databases.ts';
import { pollUntil } from '../../test/support/poll-until.ts';
import { postgresDialect, sqliteDialect } from './dialect.ts';
import { extendedMigrations } from './migrations.killed.testing.ts';
import { migrate, migrations } from './migrations.ts';
import { openStore } from './open.ts';
import { openPostgres } from './postgres/postgres.ts';
import type { Migration } from './schema/migration.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store } from './store.ts';

const victim = fileURLToPath(new URL('./migrations.killed.testing.ts', import.meta.url));
/** The tables that each migration adds. */
const ADDED = [
  ['compatible_migration', 'entry', 'list', 'migration', 'natural_key', 'outbox', 'reference', 'resource', 'setting'],
  ['refresh_family', 'signing_key'],
  ['blob_link', 'manifest', 'manifest_link', 'tag_history', 'tag_target'],
  ['sink', 'delivery'],
  ['vulnerability_report'],
  ['organization_storage', 'period_count', 'upload'],
  ['sink_address'],
  ['former_organization_name', 'organization_member'],
  ['listing_index', 'listing_index_progress', 'unindexed_write'],
];
const APPLIED = 'SELECT id FROM migration UNION SELECT id FROM compatible_migration ORDER BY id';
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

/** A migration of a newer version, which changes nothing. */
const newer = (id: number, worksFrom: number): Migration => ({
  ...{ id, worksFrom, name: `migration ${id}`, summary: 'changes nothing' },
  up: () => [],
});

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
      const ids = (await store.reader.all(APPLIED)).map(({ id }) => id);
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
          /^cannot open the .*: the database was written by a newer version of Wharfinger \(schema 1002, which needs 1001; this version supports \d+\): start the newer version$/,
      });
      await assertCompletes();
    });

    it('of a newer version that this one can work with are accepted, and the log says so', async () => {
      const store = await open();
      const lines: unknown[] = [];
      const log = { info: (fields: object, message: string) => void lines.push({ ...fields, message }), warn() {} };
      const supported = migrations.at(-1)?.id ?? 0;
      await migrate(store, dialect, [...migrations, newer(1001, 9), newer(1002, 1)]);
      assert.deepEqual(await migrate(store, dialect, migrations, log), []);
      const message = 'the database was migrated by a newer version of Wharfinger, and this version can work with it';
      assert.deepEqual(lines, [{ schema: 1002, supported, message }]);
      // What 0.1.0 reads before it starts: it knows the migrations up to 9.
      assert.equal((await store.reader.get('SELECT max(id) AS version FROM migration'))?.version, 9);
      // A migration that needs the knowledge of 1001 makes releases before 1001 refuse, and not those from 1001 on.
      await migrate(store, dialect, [...migrations, newer(1001, 9), newer(1002, 1), newer(1003, 1001)]);
      await assert.rejects(migrate(store, dialect), {
        message: /schema 1003, which needs 1001; this version supports/,
      });
      assert.deepEqual(await migrate(store, dialect, [...migrations, newer(1001, 9)]), []);
      await store.close();
    });

    it('wait for a lock only a second at a time, so that running servers are not stopped', {
      skip: !isUrl,
    }, async () => {
      const store = await open();
      const running = await open();
      await migrate(store, dialect);
      const release = Promise.withResolvers<void>();
      const locked = Promise.withResolvers<void>();
      const holding = running.write(async (tx) => {
        await tx.run("UPDATE setting SET value = value WHERE key = 'delivery.turn'");
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      const warnings: string[] = [];
      const log = { info() {}, warn: (_: object, message: string) => void warnings.push(message) };
      const migrating = migrate(store, dialect, extendedMigrations, log);
      await pollUntil(
        async () => warnings.length,
        (count) => count > 0,
      );
      // The migration waits outside of the lock queue now: this write would otherwise wait behind it.
      await running.write(async (tx) => void (await tx.run("UPDATE setting SET value = 'x' WHERE key = 'other'")));
      release.resolve();
      await holding;
      assert.equal((await migrating).length, extendedMigrations.length - migrations.length);
      await Promise.all([store.close(), running.close()]);
    });

    it('are rolled back completely when a statement fails', async () => {
      const store = await open();
      const broken = { ...newer(1000, 1000), up: () => ['CREATE TABLE half (a TEXT)', 'NONSENSE'] };
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

/** The newest migration of 0.1.0, which cannot know what later migrations declare. */
const FIRST_RELEASE = 9;

it('migrations after the first release leave a schema that the release before can use', () => {
  for (const { id, worksFrom } of migrations.filter((migration) => migration.id > FIRST_RELEASE)) {
    assert.ok(worksFrom < id, `migration ${id} must work with the release before; CONTRIBUTING.md says how`);
  }
});

it('compatible migrations only add tables and columns, and indexes of tables that they add', () => {
  for (const dialect of [sqliteDialect, postgresDialect]) {
    for (const migration of migrations.filter(({ id }) => id > FIRST_RELEASE)) {
      const statements = migration.up(dialect);
      const created = statements.flatMap((sql) => /^\s*CREATE TABLE (\w+)/.exec(sql)?.[1] ?? []);
      for (const sql of statements) {
        const [, table] =
          /^\s*(?:CREATE (?:UNIQUE )?INDEX \w+ ON|INSERT INTO|UPDATE|DELETE FROM) (\w+)/.exec(sql) ?? [];
        const isAddition =
          /^\s*CREATE TABLE /.test(sql) ||
          (table !== undefined && created.includes(table)) ||
          (/^\s*ALTER TABLE \w+ ADD COLUMN /.test(sql) && (/ DEFAULT /.test(sql) || !/ NOT NULL/.test(sql)));
        assert.ok(isAddition, `migration ${migration.id}: CONTRIBUTING.md says how to do this otherwise: ${sql}`);
      }
    }
  }
});
