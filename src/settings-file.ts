import { existsSync, lstatSync, type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Setting } from './config.ts';
import { ConfigError, readRegularFile } from './config-values.ts';
import { keyOf, secretFileKeyOf } from './setting-sources.ts';

export interface SettingsFile {
  /** Absolute. */
  readonly path: string;
  /** By key, such as `tls_cert`. */
  readonly values: ReadonlyMap<string, FileValue>;
  readonly warnings: readonly string[];
}

export interface FileValue {
  readonly text: string;
  readonly line: number;
}

/** The places where the file is looked for, if none is named. */
export const defaultFiles: readonly string[] = ['wharf.yaml', '/etc/wharfinger/wharf.yaml'];

/** Names no file, so that none of the default files is read. */
export const NO_FILE = '/dev/null';
const MAX_BYTES = 1024 * 1024;

/** What a check needs to know about the process. */
export interface ProcessUser {
  readonly user: number | undefined;
  readonly group: number | undefined;
}

const processUser = (): ProcessUser => ({ user: process.geteuid?.(), group: process.getegid?.() });

/**
 * Reads the file that `named` names, else the first of the default files that exists. Returns undefined if there is
 * none. Throws a ConfigError that names the line and the key.
 */
export async function readSettingsFile(
  settings: readonly Setting[],
  named: string | undefined,
): Promise<SettingsFile | undefined> {
  const path = resolve(named || (defaultFiles.find((file) => existsSync(file)) ?? NO_FILE));
  if (path === NO_FILE) return undefined;
  const problem = (named ? fileProblem : defaultFileProblem)(path, processUser());
  if (problem) throw new ConfigError(`the settings file ${path} cannot be used: ${problem}`);
  let text: string;
  try {
    text = readRegularFile(path, MAX_BYTES);
  } catch (error) {
    const { message } = error as Error;
    throw error instanceof ConfigError
      ? new ConfigError(`the settings file ${path} cannot be used: ${message}`)
      : error;
  }
  // Most servers have no file, and start faster without the parser.
  const { parseSettings } = await import('./parse-settings.ts');
  const values = parseSettings(settings, path, text);
  return { path, values, warnings: readableSecrets(settings, path, values) };
}

/** Why a file cannot be used, whether it was named or found. */
function fileProblem(path: string, { group }: ProcessUser): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 'the file does not exist';
  return writableProblem(path, stats, group);
}

/** Why a file that was only found cannot be used: another user may have put it there. */
export function defaultFileProblem(path: string, process: ProcessUser): string | undefined {
  const link = lstatSync(path, { throwIfNoEntry: false });
  const file = statSync(path, { throwIfNoEntry: false });
  if (process.user === undefined) return undefined;
  const isForeign = ({ uid }: Stats): boolean => uid !== process.user && uid !== 0;
  const foreign = [link, file].find((stats) => stats && isForeign(stats));
  if (foreign) {
    return `it belongs to another user (uid ${foreign.uid}): if you trust it, name it with --config ${path}`;
  }
  return file && writableProblem(path, file, process.group);
}

/** A group of the process may write: many systems give each user a group of their own, and a umask that lets it. */
function writableProblem(path: string, { mode, gid }: Stats, group: number | undefined): string | undefined {
  if (group === undefined) return undefined;
  const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== group && gid !== 0);
  if (!isWritable) return undefined;
  return `other users can write it (mode 0${(mode & 0o7777).toString(8)}): check its content, then run chmod go-w ${path}`;
}

function readableSecrets(settings: readonly Setting[], path: string, values: SettingsFile['values']): string[] {
  if (process.geteuid === undefined || (statSync(path).mode & 0o004) === 0) return [];
  return settings
    .filter((setting) => setting.secret && values.get(keyOf(setting)))
    .map(
      (setting) =>
        `other users can read ${keyOf(setting)} in ${path}: run chmod 0640, or put the secret into a file of its own ` +
        `and name that with ${secretFileKeyOf(setting)}`,
    );
}
