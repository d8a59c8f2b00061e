/** What a path below `/v2/` asks for. A name is everything between that and what is asked for. */
export type Route =
  | { readonly kind: 'base' }
  | { readonly kind: 'token' }
  | { readonly kind: 'catalog' }
  | { readonly kind: 'manifest'; readonly name: string; readonly reference: string }
  | { readonly kind: 'blob'; readonly name: string; readonly digest: string }
  | { readonly kind: 'uploads'; readonly name: string }
  | { readonly kind: 'upload'; readonly name: string; readonly id: string }
  | { readonly kind: 'tags'; readonly name: string }
  | { readonly kind: 'referrers'; readonly name: string; readonly digest: string };

export type RouteOf<K extends Route['kind']> = Extract<Route, { kind: K }>;

const fixed: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/v2', { kind: 'base' }],
  ['/v2/', { kind: 'base' }],
  ['/v2/token', { kind: 'token' }],
  ['/v2/_catalog', { kind: 'catalog' }],
]);

/** Whether a path is the registry's business at all. */
export const isRegistryPath = (path: string): boolean => path === '/v2' || path.startsWith('/v2/');

/** Read from its end, because a repo may be called `blobs` or `manifests`; undefined when there is nothing there. */
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
      return { kind: 'manifest', name, reference: decoded(last) };
    case 'blobs':
      return last === 'uploads' ? { kind: 'uploads', name } : { kind: 'blob', name, digest: decoded(last) };
    case 'uploads':
      return uploadRoute(name, last);
    case 'tags':
      return last === 'list' ? { kind: 'tags', name } : undefined;
    case 'referrers':
      return { kind: 'referrers', name, digest: decoded(last) };
    default:
      return undefined;
  }
}

function uploadRoute(path: string, id: string): Route | undefined {
  if (!path.endsWith('/blobs')) return undefined;
  const name = path.slice(0, -'/blobs'.length);
  return id === '' ? { kind: 'uploads', name } : { kind: 'upload', name, id };
}

/** Some clients escape the colon of a digest. What cannot be unescaped stays, and is refused as what it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
