import { ancestorsOf, type ParentUid, parentOf, ROOT, type Uid } from '../base/uid.ts';
import { PARTITION, type Resource, type Stored } from './definition.ts';

/** One list of the listing index that a resource belongs to, with its sort key in each order of that list. */
export interface ListMembership {
  readonly scope: string;
  readonly facet: string;
  readonly uid: Uid;
  readonly keys: Readonly<Record<string, string>>;
}

export const scopeKey = (of: 'descendants' | 'children', uid: string): string =>
  `${of === 'children' ? 'c' : 'd'}:${uid}`;

/** The uid of the organization whose descendants a scope is; undefined for any other scope. */
export const organizationOfScope = (scope: string): string | undefined =>
  scope.startsWith('d:') && !scope.includes('/') ? scope.slice(2) : undefined;

/** The facet of the list of all resources of a scope. */
export const WHOLE_LIST = '';

export const facetKey = (field: string, value: string): string => `${field}=${value}`;

/** The lists of facets hold descendants; a filter for children is applied to those. Only the root has no such list. */
export const facetScopeKey = (uid: string): string => scopeKey(uid === ROOT ? 'children' : 'descendants', uid);

/**
 * Returns all lists that a stored resource belongs to: the descendants of each of its ancestors and the children of its
 * parent, unfiltered and once per facet value.
 */
export function membershipsOf(resource: Resource): (stored: Stored) => ListMembership[] {
  const { storedSortKeys, listOrders, values, storedName } = resource;
  const facetFields = Object.keys(resource.facets ?? {});
  const scopesOf = scopesIn(resource);
  const facetsOf = (field: string, { message, state }: Stored): string[] =>
    [...(values[field]?.(message, state) ?? [])].map((value) => facetKey(storedName(field), value));
  const keysIn = (orders: readonly string[], stored: Stored): Record<string, string> => {
    const keys: Record<string, string> = {};
    for (const order of orders) keys[order] = storedSortKeys[order]?.(stored) ?? '';
    return keys;
  };

  return (stored) => {
    const { uid } = stored;
    const scopes = scopesOf(stored);
    const found: ListMembership[] = [];
    const join = (scopes: readonly string[], facet: string, keys: ListMembership['keys']): void => {
      for (const scope of scopes) found.push({ scope, facet, uid, keys });
    };
    // In uid order, whole lists are read from the primary key. Of a list that is kept in partitions only the size is
    // stored: its entries are those of the partitions.
    const partitions = facetsOf(PARTITION, stored);
    join(scopes.whole, WHOLE_LIST, partitions.length > 0 ? {} : keysIn(listOrders.whole, stored));
    for (const partition of partitions) join(scopes.whole, partition, keysIn(listOrders.partition, stored));
    const keys = keysIn(listOrders.facet, stored);
    for (const field of facetFields) for (const facet of facetsOf(field, stored)) join(scopes.facet, facet, keys);
    return found;
  };
}

interface Scopes {
  readonly whole: readonly string[];
  readonly facet: readonly string[];
}

/** The scopes whose lists a resource belongs to. The last result is reused for a sibling: imports bring them in a row. */
function scopesIn({ isScope = false, nests }: Resource): (stored: Stored) => Scopes {
  let above: ParentUid | undefined;
  let under: ParentUid | undefined;
  let known: Scopes = { whole: [], facet: [] };
  return ({ uid, parent }) => {
    if (!isScope && parent === under && parentOf(uid) === above) return known;
    [above, under] = [parentOf(uid), parent];
    const below = ancestorsOf(uid);
    if (isScope) below.push(uid);
    const whole = below.map((ancestor) => scopeKey('descendants', ancestor));
    if (nests) whole.push(scopeKey('children', parent));
    known = { whole, facet: (parent === ROOT ? [ROOT, ...below] : below).map(facetScopeKey) };
    return known;
  };
}

interface Listed {
  readonly scope: string;
  readonly facet: string;
}

/** The order in which every transaction locks lists, so that no two of them deadlock. */
export const inLockOrder = (a: Listed, b: Listed): number =>
  a.scope === b.scope ? compareText(a.facet, b.facet) : compareText(a.scope, b.scope);

/** A fixed order of texts. It differs from the bytewise order of the indexes only for characters outside of the BMP. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
