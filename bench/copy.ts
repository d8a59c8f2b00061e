/** Copies a dataset from SQLite to PostgreSQL, row by row as it is: much faster than making it again. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { openStore } from '../src/store/open.ts';
import { type Dataset, type DatasetSize, dataset, FORM } from './data.ts';
import { administer, type BenchPostgres, startPostgres } from './lib/postgres.ts';
import type { Print } from './lib/result.ts';

const ROWS = 5_000;

/** The database that holds the dataset, copied now if it is not there yet, or was made of another. */
export async function copied(data: Dataset, server: BenchPostgres, print: Print): Promise<string> {
  const name = `bench_${data.repos}_${data.groups}`;
  const admin = server.url('postgres');
  const made = `${FORM} ${data.organization}`;
  const description = `SELECT shobj_description(oid, 'pg_database') AS made FROM pg_database WHERE datname = '${name}'`;
  const [found] = await administer(admin, description);
  if (found?.rows[0]?.made === made && (await isUpToDate(data, server.url(name)))) return server.url(name);
  const started = performance.now();
  const building = `building_${randomUUID().slice(0, 8)}`;
  await administer(admin, `CREATE DATABASE ${building}`);
  await copy(data.dataDir, server.url(building));
  await administer(
    admin,
    `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
    `ALTER DATABASE ${building} RENAME TO ${name}`,
    `COMMENT ON DATABASE ${name} IS '${made}'`,
  );
  print(`copied ${data.repos} repos to PostgreSQL in ${Math.round((performance.now() - started) / 1000)} s`);
  return server.url(name);
}

/** Has PostgreSQL hold datasets of these sizes. */
export async function copyAll(sizes: readonly DatasetSize[], print: Print): Promise<void> {
  const server = await startPostgres();
  try {
    for (const size of sizes) await copied(await dataset(size, print), server, print);
  } finally {
    await server.stop();
  }
}

/** Whether it is, or its migrations have just made it so. */
const isUpToDate = async ({ dataDir }: Dataset, databaseUrl: string): Promise<boolean> =>
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

/** The tables of the schema with the types of their columns. */
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
    if (batch[0]?.length !== ROWS) continue;
    await flush();
    batch = names.map(() => []);
  }
  if (batch[0]?.length) await flush();
  if (columns.id === 'int8') {
    // What is made from now on gets the next number.
    await client.query(
      `SELECT setval(sequence, (SELECT greatest(max(id), 1) FROM ${table}))
        FROM pg_get_serial_sequence('${table}', 'id') AS sequence WHERE sequence IS NOT NULL`,
    );
  }
}
