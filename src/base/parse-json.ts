import { isTooDeep, MAX_JSON_DEPTH } from './json-depth.ts';
import { hasMoreValues } from './json-values.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses JSON from an untrusted source. `maxValues` bounds the memory that the result takes. Error messages are
 * predicates, such as `must be valid UTF-8`.
 */
export function parseJson(bytes: Uint8Array, maxValues = Number.POSITIVE_INFINITY): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Error('must be valid UTF-8');
  }
  if (hasMoreValues(text, maxValues)) throw new Error(`must have at most ${maxValues} values`);
  if (isTooDeep(text)) throw new Error(`must not be nested more than ${MAX_JSON_DEPTH} levels deep`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('must be valid JSON');
  }
}
