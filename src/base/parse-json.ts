import { isTooDeep, MAX_JSON_DEPTH } from './json-depth.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Parses JSON from an untrusted source. Error messages are predicates, such as `must be valid UTF-8`. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Error('must be valid UTF-8');
  }
  if (isTooDeep(text)) throw new Error(`must not be nested more than ${MAX_JSON_DEPTH} levels deep`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('must be valid JSON');
  }
}
