import type { IncomingMessage } from 'node:http';

export interface PathPrefix {
  /** Such as `/wharf`, or an empty text. */
  readonly path: string;
  /** Removes the prefix from the path of a request, if a proxy has not done so. */
  strip(req: IncomingMessage): void;
  /** The prefix that was removed from the path of a request, or an empty text. */
  of(req: IncomingMessage): string;
}

/** Serves all paths also below a prefix, such as `/wharf`. An empty prefix changes nothing. */
export function createPathPrefix(prefix: string): PathPrefix {
  const stripped = new WeakSet<IncomingMessage>();
  if (prefix === '') return { path: '', strip() {}, of: () => '' };
  return {
    path: prefix,
    strip(req) {
      const { url = '' } = req;
      const next = url[prefix.length];
      if (!url.startsWith(prefix) || (next !== undefined && next !== '/' && next !== '?')) return;
      const rest = url.slice(prefix.length);
      req.url = rest.startsWith('/') ? rest : `/${rest}`;
      stripped.add(req);
    },
    of: (req) => (stripped.has(req) ? prefix : ''),
  };
}
