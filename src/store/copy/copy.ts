import type { CopiedRow } from './rows.ts';
import { Checksum, encodeRow } from './rows.ts';
import type { Change, CopySource, SourceReader } from './source.ts';
import { requireSameTables, type Table } from './tables.ts';
import type { CopyProgress, CopyTarget, Replacement } from './target.ts';

/** Told what the copy does, to show it to the operator. */
export interface CopyObserver {
  /** A new step begins. `rows` is how many rows it reads, if that is known. */
  step(step: CopyStep, rows?: number): void;
  /** Some rows of the step are done. */
  advance(rows: number): void;
}

export type CopyStep = 'copy' | 'catch up' | 'verify' | 'freeze';

export interface CopiedTable {
  readonly name: string;
  readonly rows: number;
  /** A SHA-256 checksum over all rows, which both databases have in common. */
  readonly checksum: string;
}

export interface CopyResult {
  readonly tables: readonly CopiedTable[];
  /** How long writes were frozen. */
  readonly frozenMs: number;
}

export interface CopyOptions {
  readonly source: CopySource;
  readonly target: CopyTarget;
  /** Names the target in messages, without a password. */
  readonly targetName: string;
  /** Creates the schema in the empty target. */
  readonly migrateTarget: () => Promise<void>;
  readonly now: () => number;
  readonly observer: CopyObserver;
}

/** Changes that are applied in one transaction. */
const CHANGES_PER_BATCH = 5_000;
/** With fewer changes left, the freeze is short. */
const CHANGES_IN_FREEZE = 500;
const MAX_CATCH_UPS = 50;

/**
 * Copies a SQLite database to PostgreSQL while servers use it, and moves them there:
 *
 * 1. Triggers in the source begin to record the keys of changed rows.
 * 2. All tables are copied in chunks, and afterwards the rows that changed meanwhile, until few are left.
 * 3. All rows are compared with a snapshot of the source. Only changes of a later time can differ then.
 * 4. The source is frozen. The rows that changed since the snapshot are copied and compared.
 * 5. The source is marked as moved, in the transaction of the freeze. Then servers can start on the target.
 *
 * The target records what was copied in the transactions that copy it. So a copy that was killed at any time can be
 * resumed.
 */
export async function copyDatabase(options: CopyOptions): Promise<CopyResult | 'resumed after the move'> {
  const { source, target, targetName, now, observer } = options;
  const moved = source.movedTo();
  const found = await target.state();
  if (moved !== undefined) {
    const isOwn = typeof found === 'object' && found.id === source.copyId() && found.isVerified;
    if (!isOwn) throw new Error(`the database was already moved to ${moved}`);
    await target.finish();
    return 'resumed after the move';
  }
  if (found === 'foreign') {
    throw new Error(`${targetName} is not empty: create an empty database, and give its URL with --to`);
  }
  if (typeof found === 'object' && found.id !== source.copyId()) {
    throw new Error(
      `${targetName} has an unfinished copy of another database, or one that was undone: drop it and create it again`,
    );
  }
  const id = await source.recordChanges();
  if (found === 'empty') await target.claim(id);
  if (found === 'empty' || !found.isPrepared) {
    await options.migrateTarget();
    await target.prepare(now());
  }
  const tables = await target.tables();
  requireSameTables(source.tables, tables);
  const byName = new Map(tables.map((table) => [table.name, table]));
  let progress = (await target.state()) as CopyProgress;

  await copyTables();
  await catchUp();
  await target.analyze();
  const { tables: verified, lastChange: verifiedUpTo } = await verifySnapshot();
  await catchUp();

  observer.step('freeze');
  const frozenAt = performance.now();
  await source.freeze();
  try {
    await applyChanges(source);
    await verifyChangesSince(verifiedUpTo);
    await verifyCounts();
    await target.continueIds(source.generatedIds());
    progress = { ...progress, isVerified: true };
    await target.markVerified(progress);
    await source.move(targetName, now());
  } finally {
    source.release();
  }
  const frozenMs = Math.round(performance.now() - frozenAt);
  await target.finish();
  return { tables: verified, frozenMs };

  async function copyTables(): Promise<void> {
    const isDone = (table: Table): boolean => progress.tables[table.name] === true;
    const waiting = tables.filter((table) => !isDone(table));
    observer.step(
      'copy',
      waiting.map(source.count).reduce((sum, count) => sum + count, 0),
    );
    for (const table of waiting) {
      while (!isDone(table)) {
        const { rows, last } = source.readChunk(table, progress.tables[table.name] as CopiedRow | undefined);
        const next = { ...progress, tables: { ...progress.tables, [table.name]: last ?? (true as const) } };
        await target.insertChunk(table, rows, next);
        progress = next;
        observer.advance(rows.length);
      }
    }
  }

  /** Copies changed rows until few are left. */
  async function catchUp(): Promise<void> {
    observer.step('catch up');
    for (let round = 0; round < MAX_CATCH_UPS; round++) {
      if (source.lastChange() - progress.lastChange <= CHANGES_IN_FREEZE) return;
      await applyChanges(source);
    }
  }

  /** Copies the rows that have changed, as `reader` sees them. */
  async function applyChanges(reader: SourceReader): Promise<void> {
    const until = reader.lastChange();
    while (progress.lastChange < until) {
      const changes = reader.readChanges(progress.lastChange, CHANGES_PER_BATCH);
      const lastChange = changes.at(-1)?.sequence ?? until;
      const replacements: Replacement[] = [...keysByTable(changes, byName)].map(([table, keys]) => ({
        table,
        keys,
        rows: keys.flatMap((key) => {
          const row = reader.readRow(table, key);
          return row === undefined ? [] : [row];
        }),
      }));
      const next = { ...progress, lastChange };
      await target.replaceRows(replacements, next);
      progress = next;
      observer.advance(changes.length);
    }
  }

  /** Brings the target to the state of a snapshot of the source, and compares all rows. Servers go on writing. */
  async function verifySnapshot(): Promise<{ tables: CopiedTable[]; lastChange: number }> {
    const snapshot = source.openSnapshot();
    try {
      await applyChanges(snapshot);
      observer.step(
        'verify',
        tables.map(snapshot.count).reduce((sum, count) => sum + count, 0),
      );
      const checked: CopiedTable[] = [];
      for (const table of tables) checked.push(await verifyTable(snapshot, table));
      return { tables: checked, lastChange: progress.lastChange };
    } finally {
      snapshot.close();
    }
  }

  async function verifyTable(snapshot: SourceReader, table: Table): Promise<CopiedTable> {
    const { name, columns } = table;
    const [inSource, inTarget] = [new Checksum(), new Checksum()];
    let after: CopiedRow | undefined;
    do {
      const { rows, last } = snapshot.readChunk(table, after);
      const expected = rows.map((row) => encodeRow(columns, row));
      const actual = (await target.readRange(table, after, last)).map((row) => encodeRow(columns, row));
      requireEqualRows(table, expected, actual);
      inSource.add(expected);
      inTarget.add(actual);
      observer.advance(rows.length);
      after = last;
    } while (after !== undefined);
    const checksum = inSource.digest();
    if (checksum !== inTarget.digest() || inSource.rows !== inTarget.rows) throw different(name);
    return { name, rows: inSource.rows, checksum };
  }

  /** Compares the rows that have changed since the snapshot. */
  async function verifyChangesSince(sequence: number): Promise<void> {
    for (let after = sequence; ; ) {
      const changes = source.readChanges(after, CHANGES_PER_BATCH);
      const last = changes.at(-1);
      if (last === undefined) return;
      after = last.sequence;
      for (const [table, keys] of keysByTable(changes, byName)) {
        const encode = (row: CopiedRow): string => encodeRow(table.columns, row);
        const expected = keys.map((key) => source.readRow(table, key)).filter((row) => row !== undefined);
        const actual = await target.readRows(table, keys);
        requireEqualRows(table, expected.map(encode).sort(), actual.map(encode).sort());
      }
    }
  }

  async function verifyCounts(): Promise<void> {
    for (const table of tables) if (source.count(table) !== (await target.count(table))) throw different(table.name);
  }
}

/** Returns the keys of the changed rows, each once. */
function keysByTable(changes: readonly Change[], tables: ReadonlyMap<string, Table>): Map<Table, CopiedRow[]> {
  const texts = new Map<Table, Set<string>>();
  for (const { table: name, key } of changes) {
    const table = tables.get(name);
    if (table === undefined) throw new Error(`the table ${name} appeared while it was copied`);
    const keys = texts.get(table) ?? new Set();
    keys.add(key);
    texts.set(table, keys);
  }
  return new Map([...texts].map(([table, keys]) => [table, [...keys].map((key) => JSON.parse(key) as CopiedRow)]));
}

function requireEqualRows({ name }: Table, expected: readonly string[], actual: readonly string[]): void {
  if (expected.length !== actual.length || expected.some((row, at) => row !== actual[at])) throw different(name);
}

const different = (table: string): Error =>
  new Error(
    `the table ${table} is not the same in both databases: has something else written to the target? ` +
      "Drop the target, run 'wharf db copy --undo', and copy again",
  );
