import type { JsonValue } from '@bufbuild/protobuf';

/** Control characters, and those that turn the direction of writing: what could make a terminal show something else. */
const TREACHEROUS = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** A text of somebody else's, on one line and harmless to a terminal. */
export const visible = (text: string): string => text.replace(TREACHEROUS, escaped);

/** JSON as the API gave it; indented for a person. What a terminal would obey is escaped, which changes no value. */
export function jsonText(value: JsonValue, forPerson: boolean): string {
  const text = forPerson ? JSON.stringify(value, null, 2).split('\n') : [JSON.stringify(value)];
  return `${text.map(visible).join('\n')}\n`;
}

// The API writes every time like this; three decimals tell people nothing.
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/;

/** A value for a person: empty for what is not there. */
export function plain(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(plain).join(', ');
  if (typeof value === 'object') return visible(JSON.stringify(value));
  return visible(String(value)).replace(TIME, '$1Z');
}
