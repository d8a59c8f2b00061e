import { ancestorsOf } from '../base/uid.ts';
import type { Resource, Stored } from './definition.ts';

/** One list of the listing index that a resource is a member of, with its key in each order of that list. */
export interface Membership {
  readonly scope: string;
  readonly facet: string;
  readonly keys: Readonly<Record<string, string>>;
}

export const scopeKey = (of: 'descendants' | 'children', uid: string): string =>
  `${of === 'children' ? 'c' : 'd'}:${uid}`;

export const facetKey = (field: string, value: string): string => `${field}=${value}`;

/**
 * Every list that a stored resource belongs to: below each of its ancestors, and under its parent, unfiltered and
 * once per facet value. Sorted, so that transactions lock list rows in one order.
 */
export function membershipsOf(resource: Resource, stored: Stored): Membership[] {
  const scopes = ancestorsOf(stored.uid).map((uid) => scopeKey('descendants', uid));
  if (resource.isScope) scopes.push(scopeKey('descendants', stored.uid));
  if (resource.nests) scopes.push(scopeKey('children', stored.parent));

  const keys = Object.fromEntries(Object.entries(resource.sortKeys).map(([field, keyOf]) => [field, keyOf(stored)]));
  const facets = Object.entries(resource.facets ?? {}).flatMap(([field, valuesOf]) =>
    [...new Set(valuesOf(stored.message as never))].map((value) => facetKey(field, value)),
  );
  return scopes
    .flatMap((scope) => [
      // In uid order, unfiltered lists are read from the primary key instead.
      { scope, facet: '', keys },
      ...facets.map((facet) => ({ scope, facet, keys: { ...keys, uid: '' } })),
    ])
    .sort((a, b) => (a.scope + a.facet < b.scope + b.facet ? -1 : 1));
}
