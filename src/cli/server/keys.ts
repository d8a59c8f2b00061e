import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { type Config, flagOf, loadConfig, type Setting, settings } from '../../config.ts';
import type * as Rotation from '../../identity/tokens/key-rotation.ts';
import type { Store } from '../../store/store.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { example } from '../help.ts';
import { tableText } from '../output/table.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { type Output, outputs, readConfig } from '../settings/config-file.ts';

interface Options {
  readonly data?: string;
  readonly databaseUrl?: string;
  readonly output?: Output;
}

/** The keys that sign tokens. These commands work on the database itself, whether a server runs on it or not. */
export function addKeys(program: Command): void {
  const keys = program.command('keys').description('the keys that sign tokens, straight in the database of a server');
  example(keys, 'wharf keys list', 'wharf keys rotate --data /srv/wharf');

  const list = addOptions(keys.command('list').description('show the keys that are published'));
  example(list, 'wharf keys list', 'wharf keys list -o json');
  list.action(() => withKeys(list, async () => {}));

  const rotate = addOptions(
    keys.command('rotate').description('bring in a new key: published at once, in use five minutes later'),
  ).option('--now', 'use it at once, though others may not know it for five minutes');
  example(rotate, 'wharf keys rotate', 'wharf keys rotate --now');
  rotate.action(({ now }: { now?: true }) =>
    withKeys(rotate, async ({ store, masterKey, rotation, time }) => {
      await rotation.rotateKeys(store, await masterKey(), time, now && time);
    }),
  );

  const revoke = addOptions(
    keys.command('revoke').description('withdraw a key: what it has signed is worth nothing from now on'),
  ).argument('<kid>', 'the id of the key');
  example(revoke, 'wharf keys revoke 2f1c0a6d9be34c7fa81d5e60b2947c3d');
  revoke.action((kid: string) =>
    withKeys(revoke, async ({ store, masterKey, rotation, time }) => {
      if (await rotation.revokeKey(store, await masterKey(), kid, time)) return;
      throw new CliError(ExitCode.notFound, `there is no key ${kid}: 'wharf keys list' shows those there are`);
    }),
  );
}

/** The settings of `wharf serve` that lead to its database, as flags or variables. The master key is never a flag here. */
function addOptions(command: Command): Command {
  command.addOption(new Option('-o, --output <format>', 'how to print (default: "table")').choices(outputs));
  for (const setting of [settings.data, settings.databaseUrl] as Setting[]) {
    command.option(`${flagOf(setting)} <${setting.value}>`, `${setting.meaning} (env: ${setting.variable})`);
  }
  return command;
}

interface Workshop {
  readonly store: Store;
  masterKey(): Promise<Uint8Array>;
  readonly rotation: typeof Rotation;
  readonly time: number;
}

/** Opens the database, does the work and prints the keys as they are then. */
async function withKeys(command: Command, work: (workshop: Workshop) => Promise<void>): Promise<void> {
  const { data, databaseUrl, output } = command.opts<Options>();
  const config = loadConfig({ data, databaseUrl }, process.env);
  const format = output ?? (await readConfig()).output ?? 'table';
  // Loaded here, so that the other commands start without the server's weight.
  const { databaseFile, openStore } = await import('../../store/open.ts');
  const rotation = await import('../../identity/tokens/key-rotation.ts');
  // Opening a database makes it, and a slip in the path would go unnoticed.
  if (config.databaseUrl === undefined && !existsSync(databaseFile(config.data))) {
    throw new Error(`no database in ${config.data}: start the server once, or name its directory with --data`);
  }
  const store = await openStore({ dataDir: config.data, databaseUrl: config.databaseUrl });
  try {
    const time = systemClock();
    await work({ store, masterKey: () => masterKeyOf(store, config), rotation, time });
    print(command, format, await rotation.listKeys(store.reader, time));
  } finally {
    await store.close();
  }
}

async function masterKeyOf(store: Store, { data, masterKey }: Config): Promise<Uint8Array> {
  const { openMasterKey } = await import('../../identity/master-key.ts');
  return openMasterKey(store, { dataDir: data, configured: masterKey });
}

const timeOf = (ms: number | undefined): string => (ms === undefined ? '' : new Date(ms).toISOString());

function print(command: Command, format: Output, keys: readonly Rotation.KeyInfo[]): void {
  const { out, width } = terminalOf(command);
  const shown = keys.map(({ kid, state, activates, retires, expires }) => ({
    kid,
    state,
    activates: timeOf(activates),
    retires: timeOf(retires),
    expires: timeOf(expires),
  }));
  if (format === 'json') out(jsonText(shown, width !== undefined));
  else out(tableText(['KID', 'STATE', 'ACTIVATES', 'RETIRES', 'EXPIRES'], shown.map(Object.values), width));
}
