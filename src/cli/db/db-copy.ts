import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { flagOf, settings } from '../../config.ts';
import { parseDatabaseUrl } from '../../config-values.ts';
import { findDataDirectory } from '../../load-settings.ts';
import type { CopyObserver, CopyResult, CopyStep } from '../../store/copy/copy.ts';
import { usageError } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { type Progress, startProgress } from '../imports/progress.ts';
import { readOptionValue } from '../option-value.ts';
import { tableText } from '../output/table.ts';
import { type Terminal, terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { protectData } from '../server/protect-data.ts';
import { type Output, outputs } from '../settings/config-file.ts';

interface Options {
  readonly to?: string;
  readonly undo?: true;
  readonly data?: string;
  readonly output?: Output;
}

/** Adds the command that moves a server from SQLite to PostgreSQL. */
export function addDbCopy(db: Command): void {
  const { data } = settings;
  const command = db
    .command('copy')
    .description(
      'copy the SQLite database of the data directory to an empty PostgreSQL database, and move the server there. ' +
        'The server can be running: writes are frozen for a moment at the end, and refused afterwards. ' +
        'A copy that was interrupted is resumed by the same command',
    )
    .option('--to <url>', 'the PostgreSQL database; @file reads the URL from a file, which hides it from process lists')
    .option('--undo', 'stop an unfinished copy, or use the SQLite database again after a copy')
    .option(`${flagOf(data)} <${data.value}>`, `${data.description} (env: ${data.variable})`)
    .addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  addExamples(
    command,
    'PGPASSWORD=… wharf db copy --to postgres://wharf@db.example.com/wharf --data /srv/wharf',
    'wharf db copy --to @/run/secrets/database-url',
    'wharf db copy --undo',
  );
  command.action((options: Options) => (options.undo ? undo(command, options) : copy(command, options)));
}

async function copy(command: Command, { to, data, output }: Options): Promise<void> {
  if (to === undefined) throw usageError('give the PostgreSQL database with --to postgres://user@host/database');
  const url = urlOf(to);
  const targetName = nameOf(url);
  const terminal = terminalOf(command);
  const { path, directory } = await databaseIn(data, terminal);
  // Loaded here so that the other commands start without loading the server.
  const { openStore } = await import('../../store/open.ts');
  const { copyDatabase } = await import('../../store/copy/copy.ts');
  const { openCopySource } = await import('../../store/copy/source.ts');
  const { connectCopyTarget } = await import('../../store/copy/target.ts');
  const openAndClose = async (databaseUrl?: string): Promise<void> =>
    (await openStore({ dataDir: directory, databaseUrl })).close();

  const before = openCopySource(path);
  const isMoved = before.movedTo() !== undefined;
  before.close();
  // Both databases must have the schema of this version.
  if (!isMoved) await openAndClose();
  const target = await connectCopyTarget(url).catch((error: unknown) => {
    throw new Error(`cannot connect to ${targetName}`, { cause: error });
  });
  const source = openCopySource(path);
  const observer = createObserver(terminal);
  try {
    const result = await copyDatabase({
      ...{ source, target, targetName, observer, now: systemClock },
      migrateTarget: () => openAndClose(url),
    });
    observer.end();
    printResult(result, { terminal, output, targetName, directory, path });
  } catch (error) {
    observer.end();
    if (source.copyId() !== undefined && source.movedTo() === undefined) terminal.err(RESUME);
    throw error;
  } finally {
    source.close();
    await target.close();
  }
}

const RESUME =
  'The server goes on with SQLite. Run the same command again to resume the copy, or `wharf db copy --undo` to give up.\n';

async function undo(command: Command, { data, to }: Options): Promise<void> {
  if (to !== undefined) throw usageError('use --undo without --to');
  const terminal = terminalOf(command);
  const { path } = await databaseIn(data, terminal);
  const { openCopySource } = await import('../../store/copy/source.ts');
  const source = openCopySource(path);
  try {
    const moved = source.movedTo();
    if (source.copyId() === undefined) terminal.out('no copy has begun: nothing to undo\n');
    else {
      await source.undo();
      terminal.out(
        moved === undefined
          ? 'the copy has ended: drop the PostgreSQL database that it has begun\n'
          : `the SQLite database can be used again; it has nothing of what was written to ${moved} since the copy\n`,
      );
    }
  } finally {
    source.close();
  }
}

function urlOf(option: string): string {
  try {
    return parseDatabaseUrl(readOptionValue(option));
  } catch {
    // The message does not repeat the URL, which may contain a password.
    throw usageError('--to: write postgres://user@host:5432/database, or @file for a file with such a URL');
  }
}

/** Names the database of a URL without user and password. */
function nameOf(text: string): string {
  const { hostname, port, pathname, searchParams } = new URL(text);
  const host = searchParams.get('host') ?? (port ? `${hostname}:${port}` : hostname);
  return `the PostgreSQL database ${decodeURIComponent(pathname.slice(1))} on ${host}`;
}

async function databaseIn(data: string | undefined, terminal: Terminal): Promise<{ path: string; directory: string }> {
  // Not the database URL: a server that uses PostgreSQL already has nothing to copy.
  const directory = await findDataDirectory(data, process.env);
  const path = `${directory}/wharfinger.db`;
  if (!existsSync(path)) {
    throw new Error(`no SQLite database in ${directory}: give the data directory of the server with --data`);
  }
  protectData(directory, terminal);
  return { path, directory };
}

const STEPS: Readonly<Record<CopyStep, string>> = {
  copy: 'copying all tables; the server can go on',
  'catch up': 'copying what has changed meanwhile',
  verify: 'comparing all rows of both databases; the server can go on',
  freeze: 'freezing writes, and copying the last changes',
};

function createObserver(terminal: Terminal): CopyObserver & { end(): void } {
  let progress: Progress | undefined;
  let read = { read: 0, total: undefined as number | undefined };
  return {
    step(step, rows) {
      progress?.end();
      terminal.err(`${STEPS[step]}${rows === undefined ? '' : `: ${rows} rows`}\n`);
      read = { read: 0, total: rows };
      progress = startProgress({ terminal, isQuiet: false, what: 'rows' }, read);
    },
    advance(rows) {
      read.read += rows;
      progress?.update(read.read);
    },
    end: () => progress?.end(),
  };
}

interface Printed {
  readonly terminal: Terminal;
  readonly output: Output | undefined;
  readonly targetName: string;
  readonly directory: string;
  readonly path: string;
}

function printResult(
  result: CopyResult | 'resumed after the move',
  { terminal: { out, width }, output, targetName, directory, path }: Printed,
): void {
  const { tables, frozenMs } = result === 'resumed after the move' ? { tables: [], frozenMs: 0 } : result;
  if (output === 'json') {
    out(jsonText({ tables: tables.map((table) => ({ ...table })), frozenMs }, width !== undefined));
    return;
  }
  if (tables.length > 0) {
    const rows = tables.map(({ name, rows, checksum }) => [name, String(rows), checksum.slice(0, 16)]);
    out(tableText(['TABLE', 'ROWS', 'CHECKSUM'], rows, width));
    out(`\nBoth databases are the same. Writes were frozen for ${frozenMs} ms.\n`);
  }
  out(
    `Everything is in ${targetName} now, and servers refuse ${path}.\n` +
      'A running server refuses writes until you restart it with WHARF_DATABASE_URL set to the new database.\n' +
      `Keep the data directory ${directory}: the master key, the key of the owner and the blobs of images stay there.\n`,
  );
}
