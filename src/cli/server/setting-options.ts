import type { Command } from 'commander';
import { type Setting, type SettingName, settingNames, settings } from '../../config.ts';
import { type LoadedSettings, type LoadFlags, loadSettings } from '../../load-settings.ts';
import { flagOf, flagOfKey, secretFileKeyOf, variableOfKey } from '../../setting-sources.ts';
import { defaultFiles } from '../../settings-file.ts';
import { terminalOf } from '../output/terminal.ts';

/** Adds flags for settings of the server, by default for all, and the flag that names the settings file. */
export function addSettingOptions(command: Command, names: readonly SettingName[] = settingNames): Command {
  command.option(
    '--config <file>',
    `the settings file (default: ${defaultFiles.join(' or ')}, if it exists; env: WHARF_CONFIG)`,
  );
  for (const name of names) {
    const setting: Setting = settings[name];
    command.option(`${flagOf(setting)} <${setting.value}>`, describe(setting));
    if (!setting.secret) continue;
    const fileKey = secretFileKeyOf(setting);
    command.option(
      `${flagOfKey(fileKey)} <file>`,
      `a file that contains ${setting.variable} (env: ${variableOfKey(fileKey)})`,
    );
  }
  return command;
}

const describe = ({ description, variable, default: defaultText }: Setting): string =>
  `${description} (${defaultText === undefined ? '' : `default: "${defaultText}", `}env: ${variable})`;

/** Reads the settings of the server for a command that has `addSettingOptions`, and prints the warnings. */
export async function readServerSettings(command: Command): Promise<LoadedSettings> {
  const loaded = await loadSettings(command.opts<LoadFlags>(), process.env);
  for (const warning of loaded.warnings) terminalOf(command).err(`wharf: ${warning}\n`);
  return loaded;
}
