import pg from 'pg';
import { blockStarts, unblockStarts } from '../block-starts.ts';
import type { ColumnType } from '../bulk-insert.ts';
import { toColumnArrays } from '../postgres/bulk-insert.ts';
import { valueTypes } from '../postgres/types.ts';
import type { Value } from '../value.ts';
import type { CopiedRow } from './rows.ts';
import { type Column, namesOf, OWN_TABLES, type Table } from './tables.ts';

/** The state of a copy, stored in the target. */
export interface CopyProgress {
  readonly id: string;
  /** Whether the target has tables, without rows. */
  readonly isPrepared: boolean;
  /** Whether the target was found equal to the source, while the source was frozen. */
  readonly isVerified: boolean;
  /** The last change of the source that the target has. */
  readonly lastChange: number;
  /** The key up to which each table was copied; true if it was copied completely. */
  readonly tables: Readonly<Record<string, CopiedRow | true>>;
}

/** The PostgreSQL database that is copied to. */
export interface CopyTarget {
  /** `empty` has no tables, `foreign` has tables that are no copy. */
  state(): Promise<'empty' | 'foreign' | CopyProgress>;
  /** Records that the empty database is the target of this copy. */
  claim(id: string): Promise<void>;
  /** Removes the rows that migrations have created, and makes servers refuse the database until `finish`. */
  prepare(now: number): Promise<void>;
  tables(): Promise<Table[]>;
  count(table: Table): Promise<number>;
  /** Reads the rows after one key and up to another, in the order of the key. */
  readRange(table: Table, after: CopiedRow | undefined, upTo: CopiedRow | undefined): Promise<CopiedRow[]>;
  readRows(table: Table, keys: readonly CopiedRow[]): Promise<CopiedRow[]>;
  /** Inserts rows that do not exist, and stores the progress with them. */
  insertChunk(table: Table, rows: readonly CopiedRow[], progress: CopyProgress): Promise<void>;
  /** Replaces the rows of these keys, and stores the progress with them. */
  replaceRows(changes: readonly Replacement[], progress: CopyProgress): Promise<void>;
  /** Lets generated ids continue after these. */
  continueIds(ids: ReadonlyMap<string, number>): Promise<void>;
  analyze(): Promise<void>;
  /** Stores durably that the target is equal to the source. */
  markVerified(progress: CopyProgress): Promise<void>;
  /** Removes the state of the copy: servers can start. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface Replacement {
  readonly table: Table;
  readonly keys: readonly CopiedRow[];
  /** The rows of those of the keys that exist. */
  readonly rows: readonly CopiedRow[];
}

const NEW = { isPrepared: false, isVerified: false, lastChange: 0, tables: {} };

const POSTGRES_TYPES: Readonly<Record<ColumnType, string>> = {
  text: 'text',
  integer: 'bigint',
  blob: 'bytea',
  json: 'jsonb',
};
const COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  text: 'text',
  int8: 'integer',
  bytea: 'blob',
  jsonb: 'json',
};

export async function connectCopyTarget(url: string): Promise<CopyTarget> {
  const client = new pg.Client({ connectionString: url, application_name: 'wharf db copy', types: valueTypes });
  // A connection that breaks between two statements emits an event. The next statement fails anyway.
  client.on('error', () => {});
  await client.connect();

  async function readArrays(text: string, values: readonly unknown[] = []): Promise<CopiedRow[]> {
    const { rows } = await client.query<Value[]>({ text, values: [...values], rowMode: 'array' });
    return rows;
  }
  async function inTransaction(work: () => Promise<void>): Promise<void> {
    await client.query('BEGIN');
    try {
      await work();
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});
      throw error;
    }
  }
  async function readProgress(): Promise<CopyProgress> {
    const { rows } = await client.query<{ progress: string }>('SELECT progress FROM copy_progress');
    return JSON.parse(rows[0]?.progress ?? '') as CopyProgress;
  }
  const store = async (progress: CopyProgress): Promise<void> =>
    void (await client.query('UPDATE copy_progress SET progress = $1', [JSON.stringify(progress)]));
  /** The rows as arrays of their columns, for `unnest`. */
  async function withArrays(
    columns: readonly Column[],
    rows: readonly CopiedRow[],
    text: string,
  ): Promise<CopiedRow[]> {
    const results: CopiedRow[] = [];
    for (const arrays of toColumnArrays(rows.flat(), columns.length)) results.push(...(await readArrays(text, arrays)));
    return results;
  }
  const insert = async ({ name, columns }: Table, rows: readonly CopiedRow[]): Promise<void> =>
    void (await withArrays(
      columns,
      rows,
      // A row that conflicts was changed meanwhile, so it is among the changes that follow.
      `INSERT INTO ${name} (${namesOf(columns)}) OVERRIDING SYSTEM VALUE
        SELECT * FROM unnest(${arrayParameters(columns)}) ON CONFLICT DO NOTHING`,
    ));
  const blocking = {
    run: async (sql: string, ...params: Value[]) => (await client.query(sql, params)).rowCount ?? 0,
  };

  return {
    async state() {
      const { rows } = await client.query<{ name: string }>(
        'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()',
      );
      if (rows.length === 0) return 'empty';
      if (!rows.some(({ name }) => name === 'copy_progress')) return 'foreign';
      return readProgress();
    },
    claim: (id) =>
      inTransaction(async () => {
        await client.query('CREATE TABLE copy_progress (progress TEXT NOT NULL)');
        await client.query('INSERT INTO copy_progress (progress) VALUES ($1)', [JSON.stringify({ ...NEW, id })]);
      }),
    async prepare(now) {
      const names = (await tablesOf(client)).map(({ name }) => name);
      await inTransaction(async () => {
        const reason = "a copy to this database has not finished: run 'wharf db copy' again, which resumes it";
        await blockStarts(blocking, reason, now);
        await client.query(`TRUNCATE ${names.join(', ')}`);
        const { id } = await readProgress();
        await store({ ...NEW, id, isPrepared: true });
      });
    },
    tables: () => tablesOf(client),
    count: async ({ name }) => Number((await readArrays(`SELECT count(*) FROM ${name}`))[0]?.[0]),
    readRange(table, after, upTo) {
      const { name, columns, key } = table;
      const conditions: string[] = [];
      const params: Value[] = [];
      const compare = (operator: string, values: CopiedRow | undefined): void => {
        if (values === undefined) return;
        const marks = key.map(({ type }, at) => `$${params.length + at + 1}::${POSTGRES_TYPES[type]}`);
        conditions.push(`(${namesOf(key)}) ${operator} (${marks.join(', ')})`);
        params.push(...values);
      };
      compare('>', after);
      compare('<=', upTo);
      const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : '';
      return readArrays(`SELECT ${namesOf(columns)} FROM ${name} ${where} ORDER BY ${namesOf(key)}`, params);
    },
    readRows({ name, columns, key }, keys) {
      const selected = columns.map((column) => `t.${column.name}`).join(', ');
      return withArrays(
        key,
        keys,
        `SELECT ${selected} FROM ${name} AS t JOIN unnest(${arrayParameters(key)}) AS k (${namesOf(key)})
          ON ${sameKey(key)}`,
      );
    },
    insertChunk: (table, rows, progress) =>
      inTransaction(async () => {
        // The progress is lost together with the rows, so nothing has to wait for the disk.
        await client.query('SET LOCAL synchronous_commit = off');
        await insert(table, rows);
        await store(progress);
      }),
    replaceRows: (changes, progress) =>
      inTransaction(async () => {
        for (const { table, keys } of changes) {
          const { name, key } = table;
          const text = `DELETE FROM ${name} AS t USING unnest(${arrayParameters(key)}) AS k (${namesOf(key)})
            WHERE ${sameKey(key)}`;
          await withArrays(key, keys, text);
        }
        for (const { table, rows } of changes) await insert(table, rows);
        await store(progress);
      }),
    async continueIds(ids) {
      for (const { name, key } of await tablesOf(client)) {
        const last = ids.get(name);
        if (last === undefined) continue;
        const text = 'SELECT setval(pg_get_serial_sequence($1, $2), greatest($3::bigint, 1), $3::bigint > 0)';
        await client.query(text, [name, key[0]?.name, last]);
      }
    },
    analyze: async () => void (await client.query('ANALYZE')),
    markVerified: (progress) => inTransaction(() => store(progress)),
    finish: () =>
      inTransaction(async () => {
        await unblockStarts(blocking);
        await client.query('DROP TABLE copy_progress');
      }),
    close: () => client.end(),
  };
}

const arrayParameters = (columns: readonly Column[]): string =>
  columns.map(({ type }, at) => `$${at + 1}::${POSTGRES_TYPES[type]}[]`).join(', ');

const sameKey = (key: readonly Column[]): string => key.map(({ name }) => `t.${name} = k.${name}`).join(' AND ');

async function tablesOf(client: pg.Client): Promise<Table[]> {
  const { rows } = await client.query<{ table: string; column: string; type: string; position: number | null }>(
    `SELECT c.table_name AS table, c.column_name AS column, c.udt_name AS type, k.ordinal_position AS position
      FROM information_schema.columns c
      LEFT JOIN information_schema.table_constraints p ON p.table_schema = c.table_schema
        AND p.table_name = c.table_name AND p.constraint_type = 'PRIMARY KEY'
      LEFT JOIN information_schema.key_column_usage k ON k.constraint_schema = p.constraint_schema
        AND k.constraint_name = p.constraint_name AND k.table_name = c.table_name AND k.column_name = c.column_name
      WHERE c.table_schema = current_schema() ORDER BY c.table_name COLLATE "C", c.ordinal_position`,
  );
  const tables = new Map<string, { name: string; columns: (Column & { position: number | null })[] }>();
  for (const { table, column, type, position } of rows) {
    if (OWN_TABLES.has(table)) continue;
    const known = COLUMN_TYPES[type];
    if (known === undefined) throw new Error(`the column ${table}.${column} has the type ${type}, which is unknown`);
    const entry = tables.get(table) ?? { name: table, columns: [] };
    entry.columns.push({ name: column, type: known, position });
    tables.set(table, entry);
  }
  return [...tables.values()].map(({ name, columns }) => {
    const inKey = columns.filter(({ position }) => position !== null);
    const key = inKey.sort((a, b) => Number(a.position) - Number(b.position));
    return { name, columns, key };
  });
}
