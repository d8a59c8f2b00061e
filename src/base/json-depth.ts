/** Far above the depth of valid documents. Other programs that read the document may fail on deeper nesting. */
export const MAX_JSON_DEPTH = 64;

/** Whether brackets outside of strings are nested deeper. It is a loop because a regular expression could backtrack. */
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
