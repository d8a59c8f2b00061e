/** The first position at which a text is not JSON (RFC 8259), and what is expected there. */
export interface JsonSyntaxError {
  readonly at: number;
  readonly expected: string;
}

const SPACE = /[ \t\n\r]*/y;
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Finds the position of a syntax error after JSON.parse has failed. V8 reports the position of some errors only, and
 * quotes the text for others. The function keeps the open brackets in an array, so that deep nesting does not overflow
 * the stack.
 */
export function findSyntaxError(text: string): JsonSyntaxError | undefined {
  /** The closing brackets that are still missing, the innermost last. */
  const closers: ('}' | ']')[] = [];
  let next: 'value' | 'name' | 'colon' | 'comma' = 'value';
  let mayClose = false;
  let at = 0;
  for (;;) {
    at = endOf(SPACE, text, at) ?? at;
    const char = text[at];
    const closer = closers.at(-1);
    if (next === 'comma' && closer === undefined) {
      return char === undefined ? undefined : { at, expected: 'the end' };
    }
    if (mayClose && char === closer) {
      closers.pop();
      next = 'comma';
      at += 1;
      continue;
    }
    if (next === 'value' && (char === '{' || char === '[')) {
      closers.push(char === '{' ? '}' : ']');
      next = char === '{' ? 'name' : 'value';
      mayClose = true;
      at += 1;
      continue;
    }
    const end = endOfToken[next](text, at);
    if (end === undefined) {
      const expected = mayClose ? `${expectations[next]} or ${closer}` : expectations[next];
      return { at, expected };
    }
    at = end;
    mayClose = next === 'value';
    next = next === 'comma' ? (closer === '}' ? 'name' : 'value') : followers[next];
  }
}

const followers = { name: 'colon', colon: 'value', value: 'comma' } as const;

const expectations = {
  value: 'a value',
  name: 'a name in double quotes',
  colon: 'a colon',
  comma: 'a comma',
};

const endOfToken = {
  value: (text: string, at: number) => endOfString(text, at) ?? endOf(LITERAL, text, at),
  name: endOfString,
  colon: (text: string, at: number) => (text[at] === ':' ? at + 1 : undefined),
  comma: (text: string, at: number) => (text[at] === ',' ? at + 1 : undefined),
};

/** The index after the match of a sticky pattern at `at`; undefined when it does not match. */
function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function endOfString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  let at = start + 1;
  while (text.charCodeAt(at) >= 0x20) {
    if (text[at] === '"') return at + 1;
    const end = text[at] === '\\' ? endOf(ESCAPE, text, at) : at + 1;
    if (end === undefined) return undefined;
    at = end;
  }
  return undefined;
}
