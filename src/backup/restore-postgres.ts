import pg from 'pg';
import { postgresDialect } from '../store/dialect.ts';
import { migrations } from '../store/migrations.ts';
import { copyIn } from '../store/postgres/copy.ts';
import { findPart, type Manifest } from './manifest.ts';
import { connectAlone } from './postgres-snapshot.ts';
import type { RestoreOptions } from './restore.ts';
import { RestoreRefused } from './restore-refused.ts';
import { statementsFor } from './restored-state.ts';
import { decompress } from './streams.ts';
import { readPart } from './verify.ts';

/** The setting that says which restore has loaded the database. */
const RESTORED_BY = 'backup.restored-by';

const TABLES = `SELECT relname AS name FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm') ORDER BY 1`;
const INDEXES = `SELECT i.indexrelid::regclass AS name, pg_get_indexdef(i.indexrelid) AS definition
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  WHERE c.relnamespace = current_schema()::regnamespace
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid)`;

// The database of the backup may have been restored itself.
const MARK = 'INSERT INTO setting (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value';

export interface RestorePostgresOptions extends RestoreOptions {
  readonly databaseUrl: string;
  readonly token: string;
}

/**
 * Loads an empty database in one transaction: creates the tables by the migrations that the backup had, then copies the
 * rows, then creates the indexes. The next start of a server runs newer migrations.
 */
export async function restorePostgres(options: RestorePostgresOptions): Promise<void> {
  const { databaseUrl, manifest, token, progress } = options;
  const client = await connectAlone(databaseUrl);
  try {
    if (await isRestored(client, token)) return;
    progress.say('restoring the database');
    await client.query('BEGIN');
    await createTables(client, manifest.database.schema);
    await load(client, options);
    await client.query(MARK, [RESTORED_BY, token]);
    await client.query('COMMIT');
    await client.query('ANALYZE');
  } finally {
    await client.end();
  }
}

/** Returns true if this restore has loaded the database before it was interrupted. Refuses one that is not empty. */
async function isRestored(client: pg.Client, token: string): Promise<boolean> {
  const { rows } = await client.query<{ name: string }>(TABLES);
  if (rows.length === 0) return false;
  if (rows.some(({ name }) => name === 'setting')) {
    const { rows: settings } = await client.query('SELECT value FROM setting WHERE key = $1', [RESTORED_BY]);
    if (settings[0]?.value === token) return true;
  }
  const names = rows.slice(0, 3).map(({ name }) => name);
  throw new RestoreRefused(
    `the PostgreSQL database is not empty (it has ${names.join(', ')}): a restore replaces nothing, ` +
      'so create an empty database and set WHARF_DATABASE_URL to it',
  );
}

async function createTables(client: pg.Client, schema: number): Promise<void> {
  await client.query(postgresDialect.migrationLock);
  for (const table of ['migration', 'compatible_migration']) {
    await client.query(
      `CREATE TABLE ${table} (id ${postgresDialect.integer} NOT NULL PRIMARY KEY,
        name ${postgresDialect.text} NOT NULL, applied ${postgresDialect.integer} NOT NULL)`,
    );
  }
  for (const migration of migrations.filter(({ id }) => id <= schema)) {
    for (const statement of migration.up(postgresDialect)) await client.query(statement);
  }
}

async function load(client: pg.Client, { target, manifest, progress }: RestorePostgresOptions): Promise<void> {
  const { database, id } = manifest;
  if (database.kind !== 'postgresql') throw new Error('the backup has no PostgreSQL database');
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(INDEXES);
  for (const { name } of indexes) await client.query(`DROP INDEX ${name}`);
  const { rows: created } = await client.query<{ name: string }>(TABLES);
  for (const { name, columns, part, rows } of database.tables) {
    if (!created.some((table) => table.name === name)) {
      progress.say(`the table ${name} is none of Wharfinger, and is not restored`);
      continue;
    }
    const table = pg.escapeIdentifier(name);
    // Migrations insert rows too.
    await client.query(`DELETE FROM ${table}`);
    const sql = `COPY ${table} (${columns.map(pg.escapeIdentifier).join(', ')}) FROM STDIN`;
    const loaded = await copyIn(client, sql, decompress(readPart(target, id, findPart(manifest, part))));
    if (loaded !== rows) throw new Error(`the table ${name} got ${loaded} rows instead of ${rows}`);
    progress.say(`restored ${rows} rows of ${name}`);
  }
  await setSequences(client, database.sequences);
  for (const { definition } of indexes) await client.query(definition);
  for (const statement of statementsFor(database.schema)) await client.query(statement);
}

async function setSequences(
  client: pg.Client,
  sequences: Extract<Manifest['database'], { kind: 'postgresql' }>['sequences'],
): Promise<void> {
  for (const { table, column, lastValue } of sequences) {
    if (lastValue === 0) continue;
    const sequence = "pg_get_serial_sequence(quote_ident(current_schema()) || '.' || quote_ident($1), $2)";
    await client.query(`SELECT setval(${sequence}, $3)`, [table, column, lastValue]);
  }
}
