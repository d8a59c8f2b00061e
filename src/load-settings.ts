import { isReadableByOthers } from './base/private-files.ts';
import {
  type Config,
  configOf,
  readSetting,
  readSettings,
  type SettingFlags,
  type SettingName,
  settingNames,
  settings,
  type WrittenSettings,
} from './config.ts';
import { ConfigError } from './config-values.ts';
import { unknownVariable } from './known-variables.ts';
import { readSettingsFile } from './settings-file.ts';

/** The flags of settings, and the flag that names the settings file. */
export interface LoadFlags extends SettingFlags {
  readonly config?: string | undefined;
}

export interface FoundSettings {
  readonly written: WrittenSettings;
  /** The settings file that was read. */
  readonly file: string | undefined;
  /** What is valid and yet a mistake, one sentence each. */
  readonly warnings: readonly string[];
}

export interface LoadedSettings extends FoundSettings {
  readonly config: Config;
}

/**
 * Reads the settings of a server from flags, variables and the settings file. Every command that uses them calls this.
 * Call it again to reload them. Throws a ConfigError for the first mistake.
 */
export async function loadSettings(flags: LoadFlags, env: NodeJS.ProcessEnv): Promise<LoadedSettings> {
  const found = await findSettings(flags, env);
  return { ...found, config: configOf(found.written, env) };
}

/** As `loadSettings`, without parsing the values. */
export async function findSettings(flags: LoadFlags, env: NodeJS.ProcessEnv): Promise<FoundSettings> {
  const unknown = unknownVariable(env);
  if (unknown !== undefined) throw new ConfigError(unknown);
  const file = await readSettingsFile(Object.values(settings), flags.config || env.WHARF_CONFIG);
  const written = readSettings(flags, env, file);
  const readable = Object.values(written).flatMap((value) => {
    const secretFile = value?.origin.secretFile;
    return secretFile !== undefined && isReadableByOthers(secretFile)
      ? [`other users can read the secret in ${secretFile}: run chmod 0600, or set defaultMode in Kubernetes`]
      : [];
  });
  return { written, file: file?.path, warnings: [...(file?.warnings ?? []), ...readable] };
}

/** The settings whose values differ. */
export const changedSettings = (before: WrittenSettings, after: WrittenSettings): readonly SettingName[] =>
  settingNames.filter((name) => before[name]?.text !== after[name]?.text);

/** The data directory of the server on this machine, for commands that use no other setting. */
export async function findDataDirectory(flag: string | undefined, env: NodeJS.ProcessEnv): Promise<string> {
  // The file is read only if it is needed: its other settings may be invalid, or readable only by the server.
  const isGiven = flag || env[settings.data.variable];
  const file = isGiven ? undefined : await readSettingsFile(Object.values(settings), env.WHARF_CONFIG);
  return readSetting('data', { data: flag }, env, file);
}
