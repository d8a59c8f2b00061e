import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Config } from '../../config.ts';
import type { Store } from '../../store/store.ts';
import { terminalOf } from '../output/terminal.ts';
import { openServerStore } from '../server/open-server-store.ts';
import { addSettingOptions, readServerSettings } from '../server/setting-options.ts';
import { type Output, outputs, readConfig } from '../settings/config-file.ts';

/** The settings of the server that name its database, and the output format. */
export interface DatabaseCommand {
  readonly config: Config;
  readonly format: Output;
}

/** Adds the settings of the database as flags, and the output format. */
export function addDatabaseOptions(command: Command): Command {
  command.addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  return addSettingOptions(command, ['data', 'databaseUrl']);
}

/** Reads the settings. Refuses a data directory without a database: opening it would create one. */
export async function readDatabaseCommand(command: Command): Promise<DatabaseCommand> {
  const { config } = await readServerSettings(command);
  const { databaseFile } = await import('../../store/open.ts');
  if (config.databaseUrl === undefined && !existsSync(databaseFile(config.data))) {
    throw new Error(`no database in ${config.data}: start the server once, or give its data directory with --data`);
  }
  const { output } = command.opts<{ output?: Output }>();
  return { config, format: output ?? (await readConfig()).output ?? 'table' };
}

/** Opens the database, runs `work` and closes it. */
export async function withDatabase<T>(
  command: Command,
  { config }: DatabaseCommand,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openServerStore(config, terminalOf(command));
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
