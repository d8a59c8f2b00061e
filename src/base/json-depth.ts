/** Far above the depth of valid documents. Other programs that read the document may fail on deeper nesting. */
export const MAX_JSON_DEPTH = 64;

/** Whether brackets outside of strings are nested deeper. It is a loop because a regular expression could backtrack. */
export function isTooDeep(json: string): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at);
    if (quoted) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) quoted = false;
    } else if (char === QUOTE) quoted = true;
    else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth--;
    else if ((char === OPEN_BRACKET || char === OPEN_BRACE) && ++depth > MAX_JSON_DEPTH) return true;
  }
  return false;
}

const QUOTE = 0x22;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
