/** Run by migrations.test.ts as a process that migrates a database and kills itself while it does so. */
import { postgresDialect, sqliteDialect } from './dialect.ts';
import { migrate, migrations } from './migrations.ts';
import { openPostgres } from './postgres/postgres.ts';
import type { Migration } from './schema/migration.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store, Transaction } from './store.ts';

/** The migrations of the server and two more, so that a kill can also happen between two migrations. */
export const extendedMigrations: readonly Migration[] = [
  ...migrations,
  {
    ...{ id: 1001, name: 'add', summary: 'adds a column', worksFrom: 9 },
    up: ({ integer }) => [`ALTER TABLE setting ADD COLUMN extra ${integer}`],
  },
  {
    ...{ id: 1002, name: 'fill', summary: 'adds a row', worksFrom: 1001 },
    up: () => ["INSERT INTO setting (key, value) VALUES ('filled', 'once')"],
  },
];

/**
 * `target` is the path of a SQLite file or a URL. The process kills itself after `killAfter` statements; never if 0.
 */
async function main(target: string, killAfter: number): Promise<void> {
  const isUrl = target.startsWith('postgres:');
  const store = isUrl ? await openPostgres(target) : await openSqlite(target);
  process.stdout.write('ready\n');
  await migrate(killingStore(killAfter, store), isUrl ? postgresDialect : sqliteDialect, extendedMigrations);
  await store.close();
}

function killingStore(statements: number, store: Store): Store {
  let left = statements;
  const killing = (tx: Transaction): Transaction => ({
    ...tx,
    async run(sql, ...params) {
      const changed = await tx.run(sql, ...params);
      if (--left === 0) process.kill(process.pid, 'SIGKILL');
      return changed;
    },
  });
  return { ...store, write: (work) => store.write((tx) => work(killing(tx))) };
}

if (import.meta.main) await main(process.argv[2] ?? '', Number(process.argv[3]));
