/** Copies the rows of a dataset from SQLite to PostgreSQL, which is much faster than creating the dataset again. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { openStore } from '../src/store/open.ts';
import { type Dataset, type DatasetSize, ensureDataset, LIST_LAYOUT_FINGERPRINT } from './data.ts';
import { type BenchPostgres, runStatements, startPostgres } from './lib/postgres.ts';
import type { Print } from './lib/result.ts';

const ROWS_PER_INSERT = 5_000;

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

async function copy(dataDir: string, url: string): Promise<void> {
  await (await openStore({ dataDir, databaseUrl: url })).close();
  const source = new DatabaseSync(join(dataDir, 'wharfinger.db'), { readOnly: true });
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query('SET synchronous_commit = off');
    for (const [table, columns] of await tablesOf(client)) await copyTable(source, client, table, columns);
    await client.query('VACUUM ANALYZE');
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
    source.close();
  }
}

/** The tables of the schema, each with the types of its columns. */
async function tablesOf(client: pg.Client): Promise<Map<string, Record<string, string>>> {
  const { rows } = await client.query<{ table: string; column: string; type: string }>(
    `SELECT table_name AS table, column_name AS column, udt_name AS type FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name <> 'migration' ORDER BY table_name, ordinal_position`,
  );
  const tables = new Map<string, Record<string, string>>();
  for (const { table, column, type } of rows) tables.set(table, { ...tables.get(table), [column]: type });
  return tables;
}

async function copyTable(
  source: DatabaseSync,
  client: pg.Client,
  table: string,
  columns: Readonly<Record<string, string>>,
): Promise<void> {
  const names = Object.keys(columns);
  const arrays = Object.values(columns).map((type, at) => `$${at + 1}::${type}[]`);
  const statement = {
    name: table,
    text: `INSERT INTO ${table} (${names.join(', ')}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(${arrays.join(', ')}) ON CONFLICT DO NOTHING`,
  };
  let batch: unknown[][] = names.map(() => []);
  const flush = () => client.query({ ...statement, values: batch });
  for (const row of source.prepare(`SELECT ${names.join(', ')} FROM ${table}`).iterate()) {
    for (const [at, name] of names.entries()) {
      const value = row[name];
      batch[at]?.push(value instanceof Uint8Array ? Buffer.from(value) : value);
    }
    if (batch[0]?.length !== ROWS_PER_INSERT) continue;
    await flush();
    batch = names.map(() => []);
  }
  if (batch[0]?.length) await flush();
  if (columns.id === 'int8') {
    // New rows continue with the next id.
    await client.query(
      `SELECT setval(sequence, (SELECT greatest(max(id), 1) FROM ${table}))
        FROM pg_get_serial_sequence('${table}', 'id') AS sequence WHERE sequence IS NOT NULL`,
    );
  }
}
