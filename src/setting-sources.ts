import { dirname, resolve } from 'node:path';
import type { Setting, SettingFlags } from './config.ts';
import { ConfigError, readRegularFile } from './config-values.ts';
import type { SettingsFile } from './settings-file.ts';

/** Where a value comes from. `secretFile` is the file that contains it, if the source only names that file. */
export type ValueOrigin = (
  | { readonly from: 'flag'; readonly flag: string }
  | { readonly from: 'variable'; readonly variable: string }
  | { readonly from: 'file'; readonly file: string; readonly line: number; readonly key: string }
  | { readonly from: 'default' }
) & { readonly secretFile?: string };

/** The value of a setting before it is parsed. */
export interface WrittenValue {
  readonly text: string;
  readonly origin: ValueOrigin;
}

/** Returns the value that a source has for a key, such as `tls_cert` or `master_key_file`. */
export type SettingSource = (key: string, isPath: boolean) => WrittenValue | undefined;

/** The key of a setting in the settings file: `tls_cert` for WHARF_TLS_CERT. */
export const keyOf = ({ variable }: Pick<Setting, 'variable'>): string => variable.slice('WHARF_'.length).toLowerCase();

/** The key of the file that contains a secret: `master_key_file` for WHARF_MASTER_KEY. */
export const secretFileKeyOf = (setting: Pick<Setting, 'variable'>): string => `${keyOf(setting)}_file`;

export const variableOfKey = (key: string): string => `WHARF_${key.toUpperCase()}`;
export const flagOfKey = (key: string): string => `--${key.replaceAll('_', '-')}`;

/** The flag of a setting: `--tls-cert` for WHARF_TLS_CERT. */
export const flagOf = (setting: Pick<Setting, 'variable'>): string => flagOfKey(keyOf(setting));

export const flagSource =
  (flags: SettingFlags): SettingSource =>
  (key) => {
    const name = key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    const text = flags[name as keyof SettingFlags];
    return text === undefined ? undefined : { text, origin: { from: 'flag', flag: flagOfKey(key) } };
  };

export const variableSource =
  (env: NodeJS.ProcessEnv): SettingSource =>
  (key) => {
    const variable = variableOfKey(key);
    const text = env[variable];
    return text === undefined ? undefined : { text, origin: { from: 'variable', variable } };
  };

/** Relative paths in a settings file are relative to its directory, so that they mean the same for every command. */
export const fileSource =
  ({ path, values }: SettingsFile): SettingSource =>
  (key, isPath) => {
    const value = values.get(key);
    if (value === undefined) return undefined;
    const text = isPath && value.text !== '' ? resolve(dirname(path), value.text) : value.text;
    return { text, origin: { from: 'file', file: path, line: value.line, key } };
  };

/** Returns the value of the first source that has one, else the default. */
export function writtenValue(setting: Setting, sources: readonly SettingSource[]): WrittenValue | undefined {
  const isPath = setting.value === 'file' || setting.value === 'dir';
  for (const source of sources) {
    const value = source(keyOf(setting), isPath);
    const isSet = value !== undefined && (value.text !== '' || setting.mayBeEmpty === true);
    const secretFile = setting.secret && source(secretFileKeyOf(setting), true);
    if (secretFile && secretFile.text !== '') {
      if (isSet) throw new ConfigError(`${nameOf(value)} and ${nameOf(secretFile)} are both set: remove one of them`);
      return readSecretFile(setting, secretFile);
    }
    if (isSet) return value;
  }
  return setting.default === undefined ? undefined : { text: setting.default, origin: { from: 'default' } };
}

const MAX_SECRET_BYTES = 64 * 1024;

function readSecretFile(setting: Setting, { text: path, origin }: WrittenValue): WrittenValue {
  const written = { text: path, origin: { ...origin, secretFile: resolve(path) } };
  try {
    const text = readRegularFile(path, MAX_SECRET_BYTES).replace(/[\r\n]+$/, '');
    if (text === '') throw new ConfigError('the file is empty');
    return { ...written, text };
  } catch (error) {
    throw error instanceof ConfigError ? invalidValue(setting, written, error.message) : error;
  }
}

/** The error for a value that cannot be used. It names the source, and shows the value unless it is secret. */
export function invalidValue(setting: Setting, { text, origin }: WrittenValue, problem: string): ConfigError {
  const { secretFile } = origin;
  const key = secretFile === undefined ? keyOf(setting) : secretFileKeyOf(setting);
  const shown = secretFile ?? (setting.secret ? undefined : text);
  const value = shown === undefined ? '' : `=${quote(shown)}`;
  const name =
    origin.from === 'file' ? `${origin.file}:${origin.line}: ${key}${value}` : `${variableOfKey(key)}${value}`;
  const given = origin.from === 'flag' ? ` (given as ${origin.flag})` : '';
  return new ConfigError(`${name}${given} cannot be used: ${problem}`);
}

function nameOf({ origin }: WrittenValue): string {
  if (origin.from === 'flag') return origin.flag;
  if (origin.from === 'variable') return origin.variable;
  return origin.from === 'file' ? `${origin.file}:${origin.line}: ${origin.key}` : 'the default';
}

/** Quotes a value in one line and shortens it. */
const quote = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
