import { ancestorsOf, parentOf, ROOT } from '../base/uid.ts';
import { PART, type Resource, type Stored } from './definition.ts';

/** One list of the listing index that a resource is a member of, with its key in each order of that list. */
export interface Membership {
  readonly scope: string;
  readonly facet: string;
  readonly uid: string;
  readonly keys: Readonly<Record<string, string>>;
}

export const scopeKey = (of: 'descendants' | 'children', uid: string): string =>
  `${of === 'children' ? 'c' : 'd'}:${uid}`;

export const facetKey = (field: string, value: string): string => `${field}=${value}`;

/** Facets are kept for what lies below a uid; children are picked from that. Only the root keeps no such list. */
export const facetScope = (uid: string): string => scopeKey(uid === ROOT ? 'children' : 'descendants', uid);

/**
 * Tells every list that a stored resource belongs to: unfiltered, below each of its ancestors and under its parent, and
 * once per facet value.
 */
export function membershipsOf(resource: Resource): (stored: Stored) => Membership[] {
  const { sortKeys, listOrders, values } = resource;
  const facetFields = Object.keys(resource.facets ?? {});
  const scopesOf = scopesIn(resource);
  const facetsOf = (field: string, { message, state }: Stored): string[] =>
    [...(values[field]?.(message, state) ?? [])].map((value) => facetKey(field, value));
  const keysIn = (orders: readonly string[], stored: Stored): Record<string, string> => {
    const keys: Record<string, string> = {};
    for (const order of orders) keys[order] = sortKeys[order]?.(stored) ?? '';
    return keys;
  };

  return (stored) => {
    const { uid } = stored;
    const scopes = scopesOf(stored);
    const found: Membership[] = [];
    const join = (scopes: readonly string[], facet: string, keys: Membership['keys']): void => {
      for (const scope of scopes) found.push({ scope, facet, uid, keys });
    };
    // In uid order, whole lists are read from the primary key. Those that come in parts are read part by part, so that of
    // the whole only the count is kept.
    const parts = facetsOf(PART, stored);
    join(scopes.whole, '', parts.length > 0 ? {} : keysIn(listOrders.whole, stored));
    for (const part of parts) join(scopes.whole, part, keysIn(listOrders.part, stored));
    const keys = keysIn(listOrders.facet, stored);
    for (const field of facetFields) for (const facet of facetsOf(field, stored)) join(scopes.facet, facet, keys);
    return found;
  };
}

interface Scopes {
  readonly whole: readonly string[];
  readonly facet: readonly string[];
}

/** The scopes that a resource is listed in. Siblings share theirs, and an import brings them one after another. */
function scopesIn({ isScope = false, nests }: Resource): (stored: Stored) => Scopes {
  let above: string | undefined;
  let under: string | undefined;
  let known: Scopes = { whole: [], facet: [] };
  return ({ uid, parent }) => {
    if (!isScope && parent === under && parentOf(uid) === above) return known;
    [above, under] = [parentOf(uid), parent];
    const below = ancestorsOf(uid);
    if (isScope) below.push(uid);
    const whole = below.map((ancestor) => scopeKey('descendants', ancestor));
    if (nests) whole.push(scopeKey('children', parent));
    known = { whole, facet: (parent === ROOT ? [ROOT, ...below] : below).map(facetScope) };
    return known;
  };
}

interface Listed {
  readonly scope: string;
  readonly facet: string;
}

/** The order in which every transaction locks lists. */
export const inLockOrder = (a: Listed, b: Listed): number =>
  a.scope === b.scope ? compareText(a.facet, b.facet) : compareText(a.scope, b.scope);

/** Some order in which everybody does the same thing; nearly that of the indexes, which is bytewise. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
