const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;

/**
 * Whether a JSON text has more than `max` values: fields, list items and map entries at all depths. It is checked
 * before the text is parsed, because a small text with many values takes much more time and memory than its size
 * suggests. The text need not be valid.
 */
export function hasMoreValues(text: string, max: number): boolean {
  // A value takes two characters or more, such as `1,`. So a short text need not be read.
  if (text.length <= 2 * max) return false;
  let count = 1;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (quoted) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) quoted = false;
    } else if (char === QUOTE) {
      // Most strings have no escaped quote, and then the search is much faster than the loop.
      const end = text.indexOf('"', at + 1);
      if (end < 0) return false;
      if (text.charCodeAt(end - 1) === BACKSLASH) quoted = true;
      else at = end;
      // Each value follows a comma or a bracket, except the first one. An empty list or object counts as two.
    } else if ((char === COMMA || char === OPEN_BRACKET || char === OPEN_BRACE) && ++count > max) {
      return true;
    }
  }
  return false;
}
