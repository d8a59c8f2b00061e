/** Copies a dataset from SQLite to PostgreSQL, row by row as it is: much faster than making it again. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { openStore } from '../src/store/open.ts';
import type { Dataset } from './data.ts';
import { administer, type BenchPostgres } from './lib/postgres.ts';
import type { Print } from './lib/result.ts';

/** The tables that hold something in a dataset, with the PostgreSQL types of their columns. */
const TABLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  setting: { key: 'text', value: 'text' },
  signing_key: {
    ...{ kid: 'text', created: 'bigint', activates: 'bigint', retires: 'bigint', expires: 'bigint' },
    ...{ private_key: 'text', public_jwk: 'text' },
  },
  list: { id: 'bigint', scope: 'text', kind: 'text', facet: 'text', n: 'bigint' },
  natural_key: { kind: 'text', key: 'text', uid: 'text' },
  reference: { kind: 'text', field: 'text', value: 'text', uid: 'text' },
  resource: {
    ...{ kind: 'text', uid: 'text', parent: 'text', created: 'bigint', updated: 'bigint' },
    ...{ keys: 'jsonb', body: 'bytea', state: 'text' },
  },
  entry: { list: 'bigint', sort: 'text', key: 'text', uid: 'text' },
};

const ROWS = 5_000;

/** The database that holds the dataset, copied now if it is not there yet. */
export async function copied(data: Dataset, server: BenchPostgres, print: Print): Promise<string> {
  const name = `bench_${data.repos}_${data.groups}`;
  const admin = server.url('postgres');
  const [found] = await administer(admin, `SELECT 1 FROM pg_database WHERE datname = '${name}'`);
  if (found?.rowCount === 1) return server.url(name);
  const started = performance.now();
  const building = `building_${randomUUID().slice(0, 8)}`;
  await administer(admin, `CREATE DATABASE ${building}`);
  await copy(data.dataDir, server.url(building));
  await administer(admin, `ALTER DATABASE ${building} RENAME TO ${name}`);
  print(`copied ${data.repos} repos to PostgreSQL in ${Math.round((performance.now() - started) / 1000)} s`);
  return server.url(name);
}

async function copy(dataDir: string, url: string): Promise<void> {
  await (await openStore({ dataDir, databaseUrl: url })).close();
  const source = new DatabaseSync(join(dataDir, 'wharfinger.db'), { readOnly: true });
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query('SET synchronous_commit = off');
    for (const [table, columns] of Object.entries(TABLES)) await copyTable(source, client, table, columns);
    await client.query(`SELECT setval(pg_get_serial_sequence('list', 'id'), (SELECT max(id) FROM list))`);
    await client.query('VACUUM ANALYZE');
    await client.query('CHECKPOINT');
  } finally {
    await client.end();
    source.close();
  }
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
}
