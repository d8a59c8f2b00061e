/** What one proxy says about the request that it received: an element of the header `Forwarded` (RFC 7239). */
export interface ForwardedElement {
  /** The client of the proxy, as it is written: `192.0.2.1`, `"[2001:db8::1]:443"` without quotes, `unknown`, `_hidden`. */
  readonly for?: string;
  readonly host?: string;
  readonly proto?: string;
}

const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const QUOTED = /"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*)"/y;
const SPACE = /[ \t]*/y;

/** Parses the header `Forwarded`. Returns undefined if it is not valid, because its end cannot be told then. */
export function parseForwarded(header: string): readonly ForwardedElement[] | undefined {
  const elements: ForwardedElement[] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(header);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const skip = (character: string): boolean => {
    match(SPACE);
    if (header[at] !== character) return false;
    at++;
    match(SPACE);
    return true;
  };

  do {
    const element: Record<string, string> = {};
    do {
      match(SPACE);
      const name = match(TOKEN)?.[0].toLowerCase();
      // Pairs and elements may be empty: RFC 7239, section 4, and RFC 9110, section 5.6.1.
      if (name === undefined) continue;
      if (header[at] !== '=') return undefined;
      at++;
      const value = match(TOKEN)?.[0] ?? match(QUOTED)?.[1]?.replace(/\\(.)/g, '$1');
      if (value === undefined || Object.hasOwn(element, name)) return undefined;
      element[name] = value;
    } while (skip(';'));
    if (Object.keys(element).length > 0) elements.push(element);
  } while (skip(','));
  match(SPACE);
  return at === header.length ? elements : undefined;
}
