/** Deeper than anything that is meant; whoever reads it after us may fall over more. */
export const MAX_JSON_DEPTH = 64;

/** Whether brackets are nested deeper outside of strings. One pass by hand: an expression could be made to go back and forth. */
export function isTooDeep(json: string): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < json.length; at++) {
    const letter = json[at];
    if (quoted && letter === '\\') at++;
    else if (letter === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (letter === ']' || letter === '}') depth--;
    else if ((letter === '[' || letter === '{') && ++depth > MAX_JSON_DEPTH) return true;
  }
  return false;
}
