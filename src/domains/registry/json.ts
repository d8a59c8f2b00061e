const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Deeper than any manifest; whoever reads it after us may fall over more. */
const MAX_DEPTH = 64;

/** Parses JSON that a stranger wrote. The message of its error continues a sentence about the text. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Error('must be valid UTF-8');
  }
  if (depthOf(text) > MAX_DEPTH) throw new Error(`must not be nested more than ${MAX_DEPTH} levels deep`);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('must be valid JSON');
  }
}

/** How deep brackets are nested outside of strings. One pass by hand: an expression could be made to go back and forth. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (quoted && letter === '\\') at++;
    else if (letter === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (letter === '[' || letter === '{') deepest = Math.max(deepest, ++depth);
    else if (letter === ']' || letter === '}') depth--;
  }
  return deepest;
}
