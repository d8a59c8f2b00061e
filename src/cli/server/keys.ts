import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../config.ts';
import type { MasterKeySource, MasterKeys } from '../../identity/master-key.ts';
import type * as Rotation from '../../identity/tokens/rotate-and-revoke-keys.ts';
import type { Store } from '../../store/store.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { tableText } from '../output/table.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { type Output, outputs, readConfig } from '../settings/config-file.ts';
import { openServerStore } from './open-server-store.ts';
import { addResetMaster } from './reset-master.ts';
import { addSettingOptions, readServerSettings } from './setting-options.ts';

interface Options {
  readonly output?: Output;
}

/** Adds the commands for the signing keys. They open the database directly, whether a server is running or not. */
export function addKeys(program: Command): void {
  const keys = program.command('keys').description('the signing keys of tokens and the master key of a server');
  addExamples(keys, 'wharf keys list', 'wharf keys rotate --data /srv/wharf');

  const list = addDatabaseOptions(keys.command('list').description('list the published keys'));
  addExamples(list, 'wharf keys list', 'wharf keys list -o json');
  list.action(() => withKeys(list, async () => {}));

  const rotate = addDatabaseOptions(
    keys
      .command('rotate')
      .description('create a new key: it is published immediately, and signs tokens five minutes later'),
  ).option('--now', 'sign with the new key immediately; verifiers can take five minutes to read it');
  addExamples(rotate, 'wharf keys rotate', 'wharf keys rotate --now');
  rotate.action(({ now }: { now?: true }) =>
    withKeys(rotate, async ({ store, masterKeys, rotation, time }) => {
      await rotation.rotateKeys(store, await masterKeys(), time, now && time);
    }),
  );

  const revoke = addDatabaseOptions(
    keys.command('revoke').description('revoke a key: the tokens that it signed become invalid'),
  ).argument('<kid>', 'the id of the key');
  addExamples(revoke, 'wharf keys revoke 2f1c0a6d9be34c7fa81d5e60b2947c3d');
  revoke.action((kid: string) =>
    withKeys(revoke, async ({ store, masterKeys, rotation, time }) => {
      if (await rotation.revokeKey(store, await masterKeys(), kid, time)) return;
      throw new CliError(ExitCode.notFound, `there is no key ${kid}: 'wharf keys list' shows the keys`);
    }),
  );

  addRotateMaster(keys);
  addResetMaster(addDatabaseOptions(keys.command('reset-master')), withStore);
}

/** Adds the command that replaces the master key. */
function addRotateMaster(keys: Command): void {
  const command = addDatabaseOptions(
    keys
      .command('rotate-master')
      .description('replace the master key and encrypt all secrets again, while servers run; can be repeated'),
  );
  addExamples(command, 'wharf keys rotate-master --data /srv/wharf');
  command.action(async () => {
    const { rotateMasterKey } = await import('../../identity/rotate-master-key.ts');
    await withStore(command, async ({ store, source, format }) => {
      const result = await rotateMasterKey(store, source);
      const { out, width } = terminalOf(command);
      if (format === 'json') {
        out(jsonText({ ...result, formerKeyFiles: [...result.formerKeyFiles] }, width !== undefined));
        return;
      }
      out(`encrypted ${result.resealed} secrets again: the master key is ${result.keyId}\n`);
      for (const file of result.formerKeyFiles) out(`older backups need the former key: it is in ${file}\n`);
      if (source.configured) out('restart the servers without WHARF_MASTER_KEY_OLD\n');
    });
  });
}

/** Adds the settings of the database as flags. The master key can only be given by its variable. */
function addDatabaseOptions(command: Command): Command {
  command.addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  return addSettingOptions(command, ['data', 'databaseUrl']);
}

interface KeyContext {
  readonly store: Store;
  masterKeys(): Promise<MasterKeys>;
  readonly rotation: typeof Rotation;
  readonly time: number;
}

/** Opens the database, runs `work` and prints the keys afterwards. */
async function withKeys(command: Command, work: (context: KeyContext) => Promise<void>): Promise<void> {
  const rotation = await import('../../identity/tokens/rotate-and-revoke-keys.ts');
  const { openMasterKeys } = await import('../../identity/master-key.ts');
  await withStore(command, async ({ store, source, format }) => {
    const time = systemClock();
    await work({ store, masterKeys: () => openMasterKeys(store, source), rotation, time });
    print(command, format, await rotation.listKeys(store.reader, time));
  });
}

export interface StoreContext {
  readonly store: Store;
  readonly source: MasterKeySource;
  readonly format: Output;
}

/** Opens the database and runs `work`. */
async function withStore(command: Command, work: (context: StoreContext) => Promise<void>): Promise<void> {
  const { output } = command.opts<Options>();
  const { config } = await readServerSettings(command);
  const format = output ?? (await readConfig()).output ?? 'table';
  const store = await openServerStore(config, terminalOf(command));
  try {
    await work({ store, source: sourceOf(config), format });
  } finally {
    await store.close();
  }
}

const sourceOf = ({ data, masterKey, masterKeyOld }: Config): MasterKeySource => ({
  dataDir: data,
  configured: masterKey,
  configuredOld: masterKeyOld,
});

const timeOf = (ms: number | undefined): string => (ms === undefined ? '' : new Date(ms).toISOString());

function print(command: Command, format: Output, keys: readonly Rotation.KeyInfo[]): void {
  const { out, width } = terminalOf(command);
  const rows = keys.map(({ kid, state, activates, retires, expires }) => ({
    kid,
    state,
    activates: timeOf(activates),
    retires: timeOf(retires),
    expires: timeOf(expires),
  }));
  if (format === 'json') out(jsonText(rows, width !== undefined));
  else out(tableText(['KID', 'STATE', 'ACTIVATES', 'RETIRES', 'EXPIRES'], rows.map(Object.values), width));
}
