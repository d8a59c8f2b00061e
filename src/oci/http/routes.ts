/** What a path of the registry addresses. The name of the repository is everything in front of the last two or three parts. */
export type Route =
  | { readonly kind: 'version' }
  | { readonly kind: 'token' }
  | { readonly kind: 'catalog' }
  | { readonly kind: 'manifest'; readonly name: string; readonly digest: string }
  | { readonly kind: 'tagged manifest'; readonly name: string; readonly tag: string }
  | { readonly kind: 'blob'; readonly name: string; readonly digest: string }
  | { readonly kind: 'uploads'; readonly name: string }
  | { readonly kind: 'upload'; readonly name: string; readonly id: string }
  | { readonly kind: 'tags'; readonly name: string }
  | { readonly kind: 'tag history'; readonly name: string; readonly tag: string }
  | { readonly kind: 'referrers'; readonly name: string; readonly digest: string };

export type RouteOf<K extends Route['kind']> = Extract<Route, { kind: K }>;

const fixed: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/v2', { kind: 'version' }],
  ['/v2/', { kind: 'version' }],
  ['/v2/token', { kind: 'token' }],
  ['/token', { kind: 'token' }],
  ['/v2/_catalog', { kind: 'catalog' }],
]);

export const isRegistryPath = (path: string): boolean => path.startsWith('/v2/') || path === '/v2' || path === '/token';

/** Parses a path from its end, because a repository may be called `blobs` or `manifests`. Undefined for no known form. */
export function routeOf(path: string): Route | undefined {
  const known = fixed.get(path);
  if (known) return known;
  const parts = path.slice('/v2/'.length).split('/');
  const last = parts.pop() ?? '';
  const before = parts.pop() ?? '';
  const name = parts.join('/');
  if (name === '') return undefined;
  switch (before) {
    case 'manifests':
      return manifestRoute(name, unescaped(last));
    case 'blobs':
      return last === 'uploads' ? { kind: 'uploads', name } : { kind: 'blob', name, digest: unescaped(last) };
    case 'uploads':
      return uploadRoute(name, last);
    case 'tags':
      return last === 'list' ? { kind: 'tags', name } : undefined;
    case 'history':
      return historyRoute(name, unescaped(last));
    case 'referrers':
      return { kind: 'referrers', name, digest: unescaped(last) };
    default:
      return undefined;
  }
}

/** No tag contains a colon, and every digest does. Whether it is a valid one is checked by the handler. */
const manifestRoute = (name: string, reference: string): Route =>
  reference.includes(':')
    ? { kind: 'manifest', name, digest: reference }
    : { kind: 'tagged manifest', name, tag: reference };

function uploadRoute(path: string, id: string): Route | undefined {
  if (!path.endsWith('/blobs')) return undefined;
  const name = path.slice(0, -'/blobs'.length);
  return id === '' ? { kind: 'uploads', name } : { kind: 'upload', name, id };
}

const HISTORY_PREFIX = '/_chainguard';

const historyRoute = (path: string, tag: string): Route | undefined =>
  path.endsWith(HISTORY_PREFIX) ? { kind: 'tag history', name: path.slice(0, -HISTORY_PREFIX.length), tag } : undefined;

/** Some clients escape the colon of a digest. A malformed escape stays as it is, and is refused by the handler. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
