import { ancestorsOf, ROOT } from '../base/uid.ts';
import { PART, type Resource, type Stored } from './definition.ts';

/** One list of the listing index that a resource is a member of, with its key in each order of that list. */
export interface Membership {
  readonly scope: string;
  readonly facet: string;
  readonly keys: Readonly<Record<string, string>>;
}

export const scopeKey = (of: 'descendants' | 'children', uid: string): string =>
  `${of === 'children' ? 'c' : 'd'}:${uid}`;

export const facetKey = (field: string, value: string): string => `${field}=${value}`;

/** Facets are kept for what lies below a uid; children are picked from that. Only the root keeps no such list. */
export const facetScope = (uid: string): string => scopeKey(uid === ROOT ? 'children' : 'descendants', uid);

/**
 * Every list that a stored resource belongs to: unfiltered, below each of its ancestors and under its parent, and once
 * per facet value.
 */
export function membershipsOf(resource: Resource, stored: Stored): Membership[] {
  const { sortKeys, listOrders, values } = resource;
  const below = ancestorsOf(stored.uid);
  if (resource.isScope) below.push(stored.uid);
  const scopes = below.map((uid) => scopeKey('descendants', uid));
  if (resource.nests) scopes.push(scopeKey('children', stored.parent));

  const keys = Object.fromEntries(Object.entries(sortKeys).map(([order, keyOf]) => [order, keyOf(stored)]));
  const keysIn = (orders: readonly string[]) => Object.fromEntries(orders.map((order) => [order, keys[order] ?? '']));
  const facetsOf = (field: string) =>
    [...(values[field]?.(stored.message, stored.state) ?? [])].map((v) => facetKey(field, v));

  // In uid order, whole lists are read from the primary key. Those that come in parts are read part by part, so that of
  // the whole only the count is kept.
  const parts = facetsOf(PART).map((facet) => ({ facet, keys: keysIn(listOrders.part) }));
  const whole = [{ facet: '', keys: parts.length > 0 ? {} : keysIn(listOrders.whole) }, ...parts];
  const facetKeys = keysIn(listOrders.facet);
  const facets = Object.keys(resource.facets ?? {}).flatMap(facetsOf);
  const facetScopes = (stored.parent === ROOT ? [ROOT, ...below] : below).map(facetScope);
  return [
    ...scopes.flatMap((scope) => whole.map((list) => ({ scope, ...list }))),
    ...facetScopes.flatMap((scope) => facets.map((facet) => ({ scope, facet, keys: facetKeys }))),
  ];
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
