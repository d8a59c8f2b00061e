export interface RequestTarget {
  readonly path: string;
  /** Without its question mark. */
  readonly query: string;
}

const ORIGIN = /^https?:\/\/[^/?]*/i;

/** Splits the request target of a request line. A proxy sends an absolute URL (RFC 9112 section 3.2.2). */
export function parseTarget(target: string): RequestTarget {
  const text = target.startsWith('/') ? target : target.replace(ORIGIN, '');
  const cut = text.indexOf('?');
  return cut < 0 ? { path: text, query: '' } : { path: text.slice(0, cut), query: text.slice(cut + 1) };
}

/** The decoded segments of a path, and what is wrong with them by index. */
export interface SplitPath {
  readonly segments: readonly string[];
  readonly problems: ReadonlyMap<number, string>;
}

const CONTROL = /\p{Cc}/u;
const DOTS = /(?:^|\/)\.\.?(?:\/|$)/;

const NEEDS_CHECK = /[%.\p{Cc}]/u;
const NO_PROBLEMS: ReadonlyMap<number, string> = new Map();

/** Splits before decoding, so that `%2F` stays inside its segment (RFC 3986 section 2.2). */
export function splitPath(path: string): SplitPath {
  if (!NEEDS_CHECK.test(path)) return { segments: path.slice(1).split('/'), problems: NO_PROBLEMS };
  const problems = new Map<number, string>();
  const segments = path
    .slice(1)
    .split('/')
    .map((raw, index) => {
      const segment = raw.includes('%') ? percentDecode(raw) : raw;
      if (segment === undefined) {
        problems.set(index, 'must be percent-encoded UTF-8');
        return raw;
      }
      if (CONTROL.test(segment)) problems.set(index, 'must not contain control characters');
      if (segment.includes('.') && DOTS.test(segment)) problems.set(index, 'must not contain "." or ".." as a segment');
      return segment;
    });
  return { segments, problems };
}

/** Undefined for a malformed escape and for bytes that are not UTF-8. */
export function percentDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
