import { invalid } from '../../base/errors.ts';
import { findMistake } from './syntax-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Strips a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid('body', 'must be valid UTF-8');
  }
}

/** Undefined for an empty text. A complaint never quotes the text, which may hold a secret. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('body', `must be valid JSON${placeOf(text)}`);
  }
}

function placeOf(text: string): string {
  const mistake = findMistake(text);
  if (mistake === undefined) return '';
  const lines = text.slice(0, mistake.at).split('\n');
  const column = (lines.at(-1)?.length ?? 0) + 1;
  return `; expected ${mistake.expected} at line ${lines.length}, column ${column}`;
}
