/** Copies the rows of a dataset from SQLite to PostgreSQL, which is much faster than creating the dataset again. */
import { randomUUID } from 'node:crypto';
import { copyDatabase } from '../src/store/copy/copy.ts';
import { openCopySource } from '../src/store/copy/source.ts';
import { connectCopyTarget } from '../src/store/copy/target.ts';
import { databaseFile, openStore } from '../src/store/open.ts';
import { type Dataset, type DatasetSize, ensureDataset, LIST_LAYOUT_FINGERPRINT } from './data.ts';
import { type BenchPostgres, runStatements, startPostgres } from './lib/postgres.ts';
import type { Print } from './lib/result.ts';

/** Returns the URL of a database with the dataset. Copies the dataset if the database is missing or has other data. */
export async function ensureCopied(data: Dataset, server: BenchPostgres, print: Print): Promise<string> {
  const name = `bench_${data.repos}_${data.groups}`;
  const admin = server.url('postgres');
  // The comment of a database identifies its content.
  const content = `${LIST_LAYOUT_FINGERPRINT} ${data.organization}`;
  const query = `SELECT shobj_description(oid, 'pg_database') AS content FROM pg_database WHERE datname = '${name}'`;
  const [existing] = await runStatements(admin, query);
  if (existing?.rows[0]?.content === content && (await migrates(data, server.url(name)))) return server.url(name);
  const started = performance.now();
  const building = `building_${randomUUID().slice(0, 8)}`;
  await runStatements(admin, `CREATE DATABASE ${building}`);
  await copy(data.dataDir, server.url(building));
  await runStatements(
    admin,
    `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
    `ALTER DATABASE ${building} RENAME TO ${name}`,
    `COMMENT ON DATABASE ${name} IS '${content}'`,
  );
  print(`copied ${data.repos} repos to PostgreSQL in ${Math.round((performance.now() - started) / 1000)} s`);
  return server.url(name);
}

/** Copies the datasets of these sizes if necessary. */
export async function ensureAllCopied(sizes: readonly DatasetSize[], print: Print): Promise<void> {
  const server = await startPostgres();
  try {
    for (const size of sizes) await ensureCopied(await ensureDataset(size, print), server, print);
  } finally {
    await server.stop();
  }
}

/** Opens the database, which migrates it, and returns whether that succeeded. */
const migrates = async ({ dataDir }: Dataset, databaseUrl: string): Promise<boolean> =>
  openStore({ dataDir, databaseUrl }).then(
    async (store) => {
      await store.close();
      return true;
    },
    () => false,
  );

/** Copies as `wharf db copy` does, and makes the SQLite database usable again. */
async function copy(dataDir: string, url: string): Promise<void> {
  const source = openCopySource(databaseFile(dataDir));
  const target = await connectCopyTarget(url);
  try {
    await copyDatabase({
      ...{ source, target, targetName: 'the benchmark', now: Date.now, observer: { step() {}, advance() {} } },
      migrateTarget: async () => (await openStore({ dataDir, databaseUrl: url })).close(),
    });
    await source.undo();
  } finally {
    source.close();
    await target.close();
  }
  await runStatements(url, 'VACUUM ANALYZE');
  await runStatements(url, 'CHECKPOINT');
}
