import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Scalar } from 'yaml';
import { nearest } from './base/nearest.ts';
import type { Setting } from './config.ts';
import { ConfigError } from './config-values.ts';
import { keyOf, secretFileKeyOf } from './setting-sources.ts';
import type { FileValue } from './settings-file.ts';

/** Parses the text of a settings file. Scalars are taken as they are written, so `0755` and `on` are texts. */
export function parseSettings(settings: readonly Setting[], path: string, text: string): Map<string, FileValue> {
  const lines = new LineCounter();
  const document = parseDocument(text, {
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
    if (node === null || (isScalar(node) && isNull(node))) return undefined;
    if (isScalar(node)) return String(node.value).replace(/\r?\n$/, '');
    const example = `such as ${key}: ${setting.default || '…'}`;
    if (!setting.list) return fail(line, `${key} must be one value, ${example}`);
    if (!isSeq(node) || !node.items.every(isScalar)) {
      return fail(line, `${key} must be a list of values, ${example}`);
    }
    return node.items.map(({ value }) => String(value)).join(',');
  }

  const values = new Map<string, FileValue>();
  const { contents } = document;
  if (contents === null || (isScalar(contents) && isNull(contents))) return values;
  const byKey = keysOf(settings);
  const pairs = isMap(contents) ? contents.items : fail(1, 'write one setting a line, such as listen: ":8080"');
  for (const { key: keyNode, value } of pairs) {
    const line = lines.linePos((keyNode as Node).range?.[0] ?? 0).line;
    const written = isScalar(keyNode) ? String(keyNode.value) : fail(line, 'a key must be the name of a setting');
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
