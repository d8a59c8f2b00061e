import { existsSync, lstatSync, type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Node, Scalar } from 'yaml';
import { nearest } from './base/nearest.ts';
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

const NO_FILE = '/dev/null';
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
  const values = await parseSettingsFile(settings, path, text);
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

/** Parses the text of a settings file. Scalars are taken as they are written, so `0755` and `on` are texts. */
export async function parseSettingsFile(
  settings: readonly Setting[],
  path: string,
  text: string,
): Promise<Map<string, FileValue>> {
  // Most servers have no file, and start faster without the parser.
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, {
    // All scalars are texts in this schema.
    schema: 'failsafe',
    logLevel: 'error',
    prettyErrors: false,
    uniqueKeys: false,
    lineCounter: lines,
  });
  const fail = (line: number, problem: string): never => {
    throw new ConfigError(`${path}:${line}: ${problem}`);
  };
  const [error] = document.errors;
  if (error) {
    fail(lines.linePos(error.pos[0]).line, syntaxProblems[error.code] ?? `this is not valid YAML (${error.code})`);
  }

  /** The text of a value, undefined if the key has none. */
  function textOf(node: unknown, key: string, setting: Setting, line: number): string | undefined {
    if (node === null || (yaml.isScalar(node) && isNull(node))) return undefined;
    if (yaml.isScalar(node)) return String(node.value).replace(/\r?\n$/, '');
    const example = `such as ${key}: ${setting.default || '…'}`;
    if (!setting.list) return fail(line, `${key} must be one value, ${example}`);
    if (!yaml.isSeq(node) || !node.items.every(yaml.isScalar)) {
      return fail(line, `${key} must be a list of values, ${example}`);
    }
    return node.items.map(({ value }) => String(value)).join(',');
  }

  const values = new Map<string, FileValue>();
  const { contents } = document;
  if (contents === null || (yaml.isScalar(contents) && isNull(contents))) return values;
  const byKey = keysOf(settings);
  const pairs = yaml.isMap(contents) ? contents.items : fail(1, 'write one setting a line, such as listen: ":8080"');
  for (const { key: keyNode, value } of pairs) {
    const line = lines.linePos((keyNode as Node).range?.[0] ?? 0).line;
    const written = yaml.isScalar(keyNode) ? String(keyNode.value) : fail(line, 'a key must be the name of a setting');
    const key = written.replaceAll('-', '_');
    const setting = byKey.get(key) ?? fail(line, unknownKey(written, byKey.keys()));
    const earlier = values.get(key);
    if (earlier) fail(line, `${written} is set in line ${earlier.line} already: remove one of them`);
    const valueText = textOf(value, written, setting, line);
    if (valueText !== undefined) values.set(key, { text: valueText, line });
    else if (setting.mayBeEmpty) fail(line, `${written} has no value: write "" for none, or delete the line`);
  }
  return values;
}

/** Each setting by its key, and the secret settings also by the key of their file. */
function keysOf(settings: readonly Setting[]): Map<string, Setting> {
  return new Map(
    settings.flatMap((setting): [string, Setting][] => [
      [keyOf(setting), setting],
      ...(setting.secret ? ([[secretFileKeyOf(setting), setting]] as [string, Setting][]) : []),
    ]),
  );
}

function unknownKey(written: string, keys: Iterable<string>): string {
  const key = written
    .replace(/^wharf_/i, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    .replaceAll('-', '_')
    .toLowerCase();
  const meant = nearest(key, keys);
  return `${JSON.stringify(written)} is not a setting${meant ? `: did you mean ${meant}?` : "; 'wharf config show' lists all"}`;
}

/** A plain scalar that YAML 1.2 (core schema) takes for no value. */
const isNull = ({ type, value }: Scalar): boolean =>
  type === 'PLAIN' && /^(?:~|null|Null|NULL|)$/.test(String(value ?? ''));

/** The messages of the parser can contain parts of the file, such as secrets. */
const syntaxProblems: Partial<Readonly<Record<string, string>>> = {
  TAB_AS_INDENT: 'indent with spaces instead of tabs',
  BAD_INDENT: 'the indentation is wrong: each setting begins at the start of its line',
  MULTIPLE_DOCS: 'the file must have one YAML document: remove this separator',
  MISSING_CHAR: 'a quote, bracket or comma is missing',
  BAD_DQ_ESCAPE: 'a text in double quotes has an invalid escape sequence: use single quotes',
  BAD_SCALAR_START: 'a value that begins with a special character must be in quotes',
  BAD_ALIAS: 'aliases are not supported: write the value itself, in quotes if it begins with *',
  TAG_RESOLVE_FAILED: 'tags are not supported: write the value itself, in quotes if it begins with !',
};
