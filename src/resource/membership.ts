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

/** The part of a list that is always shown. */
export const SHOWN = '';

/** The part of every list that a resource stands in: the flag that shows it, or SHOWN. */
export function partOf(resource: Resource, stored: Stored): string {
  const found = Object.entries(resource.hidden ?? {}).find(([, isHidden]) => isHidden(stored.message as never));
  return found?.[0] ?? SHOWN;
}

export const partKey = (part: string): string => `#${part}`;

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
  // Lists that come in parts are read part by part, so that of the whole only the count is kept.
  const parts = resource.hidden ? [partKey(partOf(resource, stored))] : [];
  return scopes
    .flatMap((scope) => [
      // In uid order, unfiltered lists are read from the primary key instead.
      { scope, facet: '', keys: resource.hidden ? {} : keys },
      ...[...parts, ...facets].map((facet) => ({ scope, facet, keys: { ...keys, uid: '' } })),
    ])
    .sort((a, b) => (a.scope + a.facet < b.scope + b.facet ? -1 : 1));
}
