import { invalid } from '../../base/errors.ts';
import { findSyntaxError } from './syntax-error.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Decodes UTF-8 and removes a byte order mark. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid('body', 'must be valid UTF-8');
  }
}

/** Undefined for an empty text. The error does not quote the text, which may contain a secret. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('body', `must be valid JSON${positionOf(text)}`);
  }
}

function positionOf(text: string): string {
  const error = findSyntaxError(text);
  if (error === undefined) return '';
  const lines = text.slice(0, error.at).split('\n');
  const column = (lines.at(-1)?.length ?? 0) + 1;
  return `; expected ${error.expected} at line ${lines.length}, column ${column}`;
}
