import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { LastCheck } from '../../resource/check/last-check.ts';
import type { IndexStatus } from '../../resource/index/index-status.ts';
import type { Reader } from '../../store/store.ts';
import { addExamples } from '../help.ts';
import { tableText } from '../output/table.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { addDatabaseOptions, type DatabaseCommand, readDatabaseCommand } from './database.ts';

interface AppliedMigration {
  readonly id: number;
  readonly name: string;
  readonly applied: number;
}

interface Status {
  readonly database: string;
  readonly version: string;
  readonly bytes: number;
  /** The newest migration. */
  readonly schema: number;
  /** The newest migration that this version of wharf knows. */
  readonly supportedSchema: number;
  readonly migrations: readonly AppliedMigration[];
  readonly resources: Readonly<Record<string, number>>;
  readonly indexes: readonly IndexStatus[];
  readonly lastCheck: LastCheck | undefined;
}

/** Adds the command that shows the state of the database. It only reads. */
export function addDbStatus(db: Command): void {
  const command = addDatabaseOptions(
    db.command('status').description('show the schema, the size and the listing indexes; the server can be running'),
  );
  addExamples(command, 'wharf db status', 'wharf db status --data /srv/wharf -o json');
  command.action(async () => {
    const context = await readDatabaseCommand(command);
    const status = await readStatus(context);
    const { out, width } = terminalOf(command);
    if (context.format === 'json') out(jsonText(toJson(status), width !== undefined));
    else out(statusText(status, width));
  });
}

async function readStatus({ config }: DatabaseCommand): Promise<Status> {
  const { inspectDatabase } = await import('../../store/inspect.ts');
  const { migrations: known } = await import('../../store/migrations.ts');
  const { resources } = await import('../../domains/domains.ts');
  const { readIndexStatus } = await import('../../resource/index/index-status.ts');
  const { findLastCheck } = await import('../../resource/check/last-check.ts');
  const database = await inspectDatabase({ dataDir: config.data, databaseUrl: config.databaseUrl });
  const { reader, name, version, bytes } = database;
  try {
    const tables = new Set(await tableNames(reader, name));
    const migrations: AppliedMigration[] = [];
    for (const table of ['migration', 'compatible_migration']) {
      if (!tables.has(table)) continue;
      for (const row of await reader.all<{ id: number; name: string; applied: number }>(
        `SELECT id, name, applied FROM ${table} ORDER BY id`,
      )) {
        if (!migrations.some(({ id }) => id === row.id)) migrations.push({ ...row });
      }
    }
    const counts = tables.has('resource')
      ? await reader.all<{ kind: string; n: number }>(
          'SELECT kind, count(*) AS n FROM resource GROUP BY kind ORDER BY kind',
        )
      : [];
    return {
      database: name,
      version,
      bytes,
      schema: Math.max(0, ...migrations.map(({ id }) => id)),
      supportedSchema: known.at(-1)?.id ?? 0,
      migrations: migrations.sort((a, b) => a.id - b.id),
      resources: Object.fromEntries(counts.map(({ kind, n }) => [kind, Number(n)])),
      indexes: tables.has('listing_index') ? await readIndexStatus(reader, resources, systemClock()) : [],
      lastCheck: tables.has('setting') ? await findLastCheck(reader) : undefined,
    };
  } finally {
    await database.close();
  }
}

async function tableNames(reader: Reader, database: 'SQLite' | 'PostgreSQL'): Promise<string[]> {
  const statement =
    database === 'SQLite'
      ? "SELECT name FROM sqlite_schema WHERE type = 'table'"
      : 'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()';
  return (await reader.all<{ name: string }>(statement)).map(({ name }) => name);
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

const toJson = ({ migrations, lastCheck, indexes, resources, ...status }: Status): JsonObject => ({
  ...status,
  resources: { ...resources },
  migrations: migrations.map(({ id, name, applied }) => ({ id, name, applied: timeOf(applied) })),
  indexes: indexes.map(({ kind, state, generation, percentage, secondsLeft }) => ({
    ...{ kind, state, generation },
    ...(percentage !== undefined && { percentage }),
    ...(secondsLeft !== undefined && { secondsLeft }),
  })),
  ...(lastCheck && { lastCheck: { ...lastCheck, at: timeOf(lastCheck.at) } }),
});

function statusText(status: Status, width: number | undefined): string {
  const { database, version, bytes, schema, supportedSchema, migrations, resources, indexes, lastCheck } = status;
  const summary = [
    ['database', `${database} ${version}`],
    ['size', `${(bytes / 2 ** 20).toFixed(1)} MiB`],
    ['schema', `${schema}${schema === supportedSchema ? '' : ` (this version of wharf knows ${supportedSchema})`}`],
    ['last check', lastCheck ? describeCheck(lastCheck) : 'never (run wharf db check)'],
  ];
  const states = new Map(indexes.map((index) => [index.kind, index]));
  const rows = Object.entries(resources).map(([kind, n]) => [kind, String(n), describeIndex(states.get(kind))]);
  return [
    tableText(['', ''], summary, width).replace(/^\s*\n/, ''),
    tableText(
      ['MIGRATION', 'NAME', 'APPLIED'],
      migrations.map((m) => [String(m.id), m.name, timeOf(m.applied)]),
      width,
    ),
    tableText(['KIND', 'RESOURCES', 'LISTING INDEX'], rows, width),
  ].join('\n');
}

const describeCheck = ({ at, differences, repaired }: LastCheck): string =>
  `${timeOf(at)}, ${differences === 0 ? 'no differences' : `${differences} differences, ${repaired} repaired`}`;

function describeIndex(index: IndexStatus | undefined): string {
  if (!index) return '';
  const { state, percentage, secondsLeft } = index;
  if (state === 'complete') return 'complete';
  if (state === 'not registered') return 'declared differently by this version; it is rebuilt when this version starts';
  const left = secondsLeft === undefined ? '' : `, about ${secondsLeft} s left`;
  return `${state}: ${percentage ?? 0} %${left}`;
}
