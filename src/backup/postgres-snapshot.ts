import pg from 'pg';
import { copyOut } from '../store/postgres/copy.ts';
import type { CopiedTable, Sequence } from './manifest.ts';
import { BLOBS, type DatabaseSnapshot, type SchemaVersion, schemaVersion, settingStatement } from './snapshot.ts';

const FETCH_ROWS = 5_000;

const TABLES = `SELECT c.relname AS name FROM pg_class c
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname COLLATE "C"`;
const COLUMNS = `SELECT a.attname AS name,
    pg_get_serial_sequence(quote_ident(current_schema()) || '.' || quote_ident($1), a.attname) AS sequence
  FROM pg_attribute a
  WHERE a.attrelid = (quote_ident(current_schema()) || '.' || quote_ident($1))::regclass
    AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`;

/** The state of an unfinished `wharf db copy`, which a restored database does not continue. */
const COPY_TABLES: ReadonlySet<string> = new Set(['copy_source', 'copy_change', 'copy_progress']);

/**
 * Begins a transaction that sees one state of the database until it ends. Its tables are written as the text of COPY,
 * which every version of PostgreSQL reads.
 */
export async function takePostgresSnapshot(
  url: string,
  { clock, masterKeySetting }: { readonly clock: () => number; readonly masterKeySetting: string },
): Promise<DatabaseSnapshot> {
  const client = await connectAlone(url);
  try {
    const moment = clock();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const version = await readVersion(client);
    const { rows: checks } = await client.query<{ value: string }>(settingStatement('$1'), [masterKeySetting]);
    return {
      moment,
      version,
      masterKeyCheck: checks[0]?.value,
      blobs: () => fetchBlobs(client),
      async write(writePart) {
        const tables: CopiedTable[] = [];
        const sequences: Sequence[] = [];
        const { rows: names } = await client.query<{ name: string }>(TABLES);
        for (const { name } of names) {
          if (COPY_TABLES.has(name)) continue;
          const { rows: columns } = await client.query<ColumnRow>(COLUMNS, [name]);
          for (const { name: column, sequence } of columns) {
            if (sequence !== null)
              sequences.push({ table: name, column, lastValue: await lastValue(client, sequence) });
          }
          const columnNames = columns.map((column) => column.name);
          const part = `table-${name}.copy.zst`;
          let rows = 0;
          const sql = `COPY ${pg.escapeIdentifier(name)} (${columnNames.map(pg.escapeIdentifier).join(', ')}) TO STDOUT`;
          await writePart(part, async function* () {
            rows = yield* copyOut(client, sql);
          });
          tables.push({ name, part, columns: columnNames, rows });
        }
        return { kind: 'postgresql', ...version, tables, sequences };
      },
      close: () => client.end(),
    };
  } catch (error) {
    await client.end();
    throw error;
  }
}

async function readVersion(client: pg.Client): Promise<SchemaVersion> {
  const rowsOf = async (table: string) => {
    const { rows: found } = await client.query('SELECT to_regclass($1) IS NOT NULL AS exists', [table]);
    if (!found[0].exists) return [];
    const { rows } = await client.query<{ id: string; name: string }>(`SELECT id, name FROM ${table}`);
    return rows.map(({ id, name }) => ({ id: Number(id), name }));
  };
  return schemaVersion(await rowsOf('migration'), await rowsOf('compatible_migration'));
}

interface ColumnRow {
  readonly name: string;
  readonly sequence: string | null;
}

/** A connection outside of the pool of the server, without its timeouts. */
export async function connectAlone(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'wharfinger backup',
    connectionTimeoutMillis: 10_000,
    statement_timeout: 0,
    idle_in_transaction_session_timeout: 0,
    keepAlive: true,
  });
  // The statement that runs fails with the same error.
  client.on('error', () => {});
  await client.connect();
  return client;
}

/**
 * Sequences are not part of a transaction: the value can be higher than those in the snapshot, which does no harm. It
 * must not be lower than any value that was used, because ids of events are never used again.
 */
async function lastValue(client: pg.Client, sequence: string): Promise<number> {
  // pg_get_serial_sequence returns a quoted name.
  const { rows } = await client.query<{ last_value: string; is_called: boolean }>(
    `SELECT last_value, is_called FROM ${sequence}`,
  );
  return rows[0]?.is_called ? Number(rows[0].last_value) : 0;
}

async function* fetchBlobs(client: pg.Client) {
  await client.query(`DECLARE blobs NO SCROLL CURSOR FOR ${BLOBS}`);
  for (;;) {
    const { rows } = await client.query<{ digest: string; size: string }>(`FETCH ${FETCH_ROWS} FROM blobs`);
    for (const { digest, size } of rows) yield { digest, size: Number(size) };
    if (rows.length < FETCH_ROWS) break;
  }
  await client.query('CLOSE blobs');
}
