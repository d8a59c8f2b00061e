import { randomUUID } from 'node:crypto';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { blockStarts, unblockStarts } from '../block-starts.ts';
import type { ColumnType } from '../bulk-insert.ts';
import type { Value } from '../value.ts';
import type { CopiedRow } from './rows.ts';
import { namesOf, OWN_TABLES, type Table } from './tables.ts';

/** A chunk ends after this many rows or bytes. */
const CHUNK_ROWS = 5_000;
const CHUNK_BYTES = 8 * 1024 * 1024;
const LOCK_POLL_MS = 1;
const LOCK_WAIT_MS = 60_000;

export interface Chunk {
  readonly rows: readonly CopiedRow[];
  /** The key of the last row; undefined if the table has no row after this chunk. */
  readonly last: CopiedRow | undefined;
}

/** A row that was inserted, changed or deleted while the copy was running. */
export interface Change {
  readonly sequence: number;
  readonly table: string;
  /** The key as a JSON array. */
  readonly key: string;
}

/** Reads rows as they are in one transaction, or in the last commit. */
export interface SourceReader {
  count(table: Table): number;
  /** Reads the rows after this key, in the order of the key. */
  readChunk(table: Table, after: CopiedRow | undefined): Chunk;
  readRow(table: Table, key: CopiedRow): CopiedRow | undefined;
  /** The changes after this one, oldest first. */
  readChanges(after: number, limit: number): Change[];
  lastChange(): number;
  /** The highest id that each table has generated. */
  generatedIds(): Map<string, number>;
  close(): void;
}

/** The SQLite database that is copied. Servers can use it at the same time. */
export interface CopySource extends SourceReader {
  readonly tables: readonly Table[];
  /** Identifies the copy: the target has the same id. Undefined before `recordChanges`. */
  copyId(): string | undefined;
  /** Where the database was moved to, if it was. */
  movedTo(): string | undefined;
  /** Installs triggers that record the keys of changed rows. Returns the id of the copy. */
  recordChanges(): Promise<string>;
  /** Opens a second connection that sees the database as it is now. */
  openSnapshot(): SourceReader;
  /** Takes the write lock: writes of servers wait until `move` or `release`. */
  freeze(): Promise<void>;
  /** Ends the freeze without a change. */
  release(): void;
  /** Commits that the database has moved: servers refuse to start on it, and running ones refuse writes. */
  move(target: string, now: number): Promise<void>;
  /** Reverses `recordChanges` and `move`. */
  undo(): Promise<void>;
}

export function openCopySource(path: string): CopySource {
  const database = new DatabaseSync(path, { timeout: 0 });
  database.exec('PRAGMA synchronous = FULL');
  const tables = tablesOf(database);
  const state = (): { id: string; moved_to: string | null } | undefined =>
    hasTable(database, 'copy_source')
      ? (database.prepare('SELECT id, moved_to FROM copy_source').get() as { id: string; moved_to: string | null })
      : undefined;

  async function begin(): Promise<void> {
    const giveUpAt = performance.now() + LOCK_WAIT_MS;
    for (;;) {
      try {
        database.exec('BEGIN IMMEDIATE');
        return;
      } catch (error) {
        if ((error as { errcode?: number }).errcode !== 5 || performance.now() > giveUpAt) throw error;
        await sleep(LOCK_POLL_MS);
      }
    }
  }
  async function inTransaction(work: () => void | Promise<void>): Promise<void> {
    await begin();
    await commitAfter(work);
  }
  async function commitAfter(work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
      database.exec('COMMIT');
    } catch (error) {
      release();
      throw error;
    }
  }
  function release(): void {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
  function dropTriggers(): void {
    for (const name of triggersOf(database)) database.exec(`DROP TRIGGER ${name}`);
  }
  const blocking = { run: (sql: string, ...params: Value[]) => Number(prepare(database, sql).run(...params).changes) };

  return {
    ...createReader(database),
    tables,
    copyId: () => state()?.id,
    movedTo: () => state()?.moved_to ?? undefined,
    async recordChanges() {
      const triggers = tables.flatMap(recordingTriggers);
      const existing = state()?.id;
      if (existing !== undefined) {
        if (String(triggersOf(database).sort()) === String(triggers.map(({ name }) => name).sort())) return existing;
        throw new Error(
          "the database was migrated since the copy began: run 'wharf db copy --undo', and copy to an empty database",
        );
      }
      const id = randomUUID();
      await inTransaction(() => {
        database.exec('CREATE TABLE copy_source (id TEXT NOT NULL, moved_to TEXT) STRICT');
        database.prepare('INSERT INTO copy_source (id) VALUES (?)').run(id);
        database.exec(
          'CREATE TABLE copy_change (sequence INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, key TEXT NOT NULL) STRICT',
        );
        for (const { sql } of triggers) database.exec(sql);
      });
      return id;
    },
    openSnapshot() {
      const snapshot = new DatabaseSync(path, { readOnly: true, timeout: 1_000 });
      snapshot.exec('BEGIN');
      snapshot.prepare('SELECT count(*) FROM copy_source').get(); // The first read determines what later ones see.
      return { ...createReader(snapshot), close: () => snapshot.close() };
    },
    freeze: begin,
    release,
    async move(target, now) {
      await commitAfter(async () => {
        dropTriggers();
        database.exec('DROP TABLE copy_change');
        const reason =
          `this database was moved to ${target}: set WHARF_DATABASE_URL to that database, ` +
          "or run 'wharf db copy --undo' to use this one again";
        database.prepare('UPDATE copy_source SET moved_to = ?').run(target);
        await blockStarts(blocking, reason, now);
        for (const { sql } of tables.flatMap((table) => refusingTriggers(table, reason))) database.exec(sql);
      });
    },
    async undo() {
      await inTransaction(async () => {
        dropTriggers();
        database.exec('DROP TABLE IF EXISTS copy_change');
        database.exec('DROP TABLE IF EXISTS copy_source');
        await unblockStarts(blocking);
      });
    },
    close: () => database.close(),
  };
}

function createReader(database: DatabaseSync): SourceReader {
  const statements = new Map<string, StatementSync>();
  const prepared = (sql: string): StatementSync => {
    const statement = statements.get(sql) ?? prepare(database, sql);
    statement.setReturnArrays(true);
    statements.set(sql, statement);
    return statement;
  };
  return {
    count: ({ name }) => Number((prepared(`SELECT count(*) FROM ${name}`).get() as unknown as [number])[0]),
    readChunk(table, after) {
      const { name, columns, key } = table;
      const marks = key.map(() => '?').join(', ');
      const where = after === undefined ? '' : `WHERE (${namesOf(key)}) > (${marks})`;
      const sql = `SELECT ${namesOf(columns)} FROM ${name} ${where} ORDER BY ${namesOf(key)}`;
      const rows: CopiedRow[] = [];
      let bytes = 0;
      for (const row of prepared(sql).iterate(...(after ?? [])) as unknown as Iterable<CopiedRow>) {
        rows.push(row);
        for (const value of row) if (value !== null && typeof value !== 'number') bytes += value.length;
        if (rows.length >= CHUNK_ROWS || bytes >= CHUNK_BYTES) return { rows, last: keyOf(table, row) };
      }
      return { rows, last: undefined };
    },
    readRow({ name, columns, key }, values) {
      const where = key.map((column) => `${column.name} = ?`).join(' AND ');
      const sql = `SELECT ${namesOf(columns)} FROM ${name} WHERE ${where}`;
      return prepared(sql).get(...values) as unknown as CopiedRow | undefined;
    },
    readChanges: (after, limit) =>
      (
        prepared('SELECT sequence, name, key FROM copy_change WHERE sequence > ? ORDER BY sequence LIMIT ?').all(
          after,
          limit,
        ) as unknown as [number, string, string][]
      ).map(([sequence, table, key]) => ({ sequence, table, key })),
    lastChange: () =>
      Number((prepared('SELECT max(sequence) FROM copy_change').get() as unknown as [number | null])[0] ?? 0),
    generatedIds: () =>
      new Map(prepared('SELECT name, seq FROM sqlite_sequence').all() as unknown as [string, number][]),
    close() {},
  };
}

export const keyOf = ({ columns, key }: Table, row: CopiedRow): CopiedRow =>
  key.map((column) => row[columns.indexOf(column)] as Value);

/** SQLite numbers its parameters as `?1`. */
const prepare = (database: DatabaseSync, sql: string): StatementSync =>
  database.prepare(sql.replace(/\$(\d+)/g, '?$1'));

const hasTable = (database: DatabaseSync, name: string): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;

const triggersOf = (database: DatabaseSync): string[] =>
  database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'copy\\_%' ESCAPE '\\'")
    .all()
    .map(({ name }) => String(name));

const TYPES: Readonly<Record<string, ColumnType>> = { TEXT: 'text', INTEGER: 'integer', BLOB: 'blob' };

function tablesOf(database: DatabaseSync): Table[] {
  const names = database
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all()
    .map(({ name }) => String(name));
  return names
    .filter((name) => !OWN_TABLES.has(name))
    .map((name) => {
      const info = database.prepare('SELECT name, type, pk FROM pragma_table_info(?)').all(name);
      const columns = info.map((column) => ({
        name: String(column.name),
        type: TYPES[String(column.type)] ?? 'text',
        position: Number(column.pk),
      }));
      const key = columns.filter(({ position }) => position > 0).sort((a, b) => a.position - b.position);
      if (key.length === 0) throw new Error(`the table ${name} has no primary key, so it cannot be copied`);
      return { name, columns, key };
    });
}

interface Trigger {
  readonly name: string;
  readonly sql: string;
}

const EVENTS = ['INSERT', 'UPDATE', 'DELETE'] as const;

/** The table of changes has no unique key: a conflict in a trigger would fail the statement of the server. */
function recordingTriggers({ name, key }: Table): Trigger[] {
  const record = (row: 'OLD' | 'NEW'): string =>
    `INSERT INTO copy_change (name, key) VALUES ('${name}', json_array(${key.map((column) => `${row}.${column.name}`)}));`;
  const bodies = { INSERT: record('NEW'), UPDATE: record('OLD') + record('NEW'), DELETE: record('OLD') };
  return EVENTS.map((event) => {
    const trigger = `copy_${name}_${event.toLowerCase()}`;
    return { name: trigger, sql: `CREATE TRIGGER ${trigger} AFTER ${event} ON ${name} BEGIN ${bodies[event]} END` };
  });
}

function refusingTriggers({ name }: Table, reason: string): Trigger[] {
  return EVENTS.map((event) => {
    const trigger = `copy_${name}_${event.toLowerCase()}`;
    const text = reason.replaceAll("'", "''");
    return {
      name: trigger,
      sql: `CREATE TRIGGER ${trigger} BEFORE ${event} ON ${name} BEGIN SELECT RAISE(ABORT, '${text}'); END`,
    };
  });
}
