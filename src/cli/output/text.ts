import type { JsonValue } from '@bufbuild/protobuf';

/** Control characters, and those that change the direction of text: they can make a terminal show a false text. */
const UNSAFE_CHARACTERS = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu;

const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Makes untrusted text safe for a terminal, on one line. */
export const escapeForTerminal = (text: string): string => text.replace(UNSAFE_CHARACTERS, escapeCharacter);

/** Formats JSON, indented if `isPretty`. Unsafe characters are escaped, which does not change the values. */
export function jsonText(value: JsonValue, isPretty: boolean): string {
  const text = isPretty ? JSON.stringify(value, null, 2).split('\n') : [JSON.stringify(value)];
  return `${text.map(escapeForTerminal).join('\n')}\n`;
}

// The format of all times in the API. The milliseconds are not printed.
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/;

/** Formats a value for a table or a line. Missing values are empty. */
export function formatValue(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(formatValue).join(', ');
  if (typeof value === 'object') return escapeForTerminal(JSON.stringify(value));
  return escapeForTerminal(String(value)).replace(TIME, '$1Z');
}
