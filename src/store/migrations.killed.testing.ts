/** Run by migrations.test.ts as a process that migrates a database and dies in the midst of it, as by a power cut. */
import { postgresDialect, sqliteDialect } from './dialect.ts';
import { type Migration, migrate, migrations } from './migrations.ts';
import { openPostgres } from './postgres/postgres.ts';
import { openSqlite } from './sqlite/sqlite.ts';
import type { Store, Transaction } from './store.ts';

/** Ours and two more, so that a kill can also fall between two migrations. */
export const lengthened: readonly Migration[] = [
  ...migrations,
  { id: 1001, name: 'add', up: ({ integer }) => [`ALTER TABLE setting ADD COLUMN extra ${integer}`] },
  { id: 1002, name: 'fill', up: () => ["INSERT INTO setting (key, value) VALUES ('filled', 'once')"] },
];

/** `target` is the path of a SQLite file or a URL. After so many statements, 0 for none, it kills itself. */
async function main(target: string, killAfter: number): Promise<void> {
  const isUrl = target.startsWith('postgres:');
  const store = isUrl ? await openPostgres(target) : await openSqlite(target);
  process.stdout.write('ready\n');
  await migrate(dyingAfter(killAfter, store), isUrl ? postgresDialect : sqliteDialect, lengthened);
  await store.close();
}

function dyingAfter(statements: number, store: Store): Store {
  let left = statements;
  const dying = (tx: Transaction): Transaction => ({
    ...tx,
    async run(sql, ...params) {
      const changed = await tx.run(sql, ...params);
      if (--left === 0) process.kill(process.pid, 'SIGKILL');
      return changed;
    },
  });
  return { ...store, write: (work) => store.write((tx) => work(dying(tx))) };
}

if (import.meta.main) await main(process.argv[2] ?? '', Number(process.argv[3]));
