import type { ListingIndexes } from '../../store/listing-indexes.ts';
import { PARTITION, type Resource, type Stored } from '../definition.ts';
import { withoutParts } from '../index/build-in-progress.ts';
import { missingParts } from '../index/index-parts.ts';
import { type ListMembership, membershipsOf } from '../list-membership.ts';

// What resources should have in other tables.

/** Returns the lists that a resource should be in, without the parts of the index that `indexes` lack. */
export function expectedMemberships(
  indexes: ListingIndexes | undefined,
  resource: Resource,
): (stored: Stored) => ListMembership[] {
  const missing = missingParts(resource, indexes?.get(resource.kind));
  const all = membershipsOf(resource);
  return missing ? (stored) => all(stored).flatMap((each) => withoutParts(each, missing) ?? []) : all;
}

/** Returns the key of the entry that a resource should have in a list, or undefined if it should have none. */
export function expectedKey(
  memberships: (stored: Stored) => ListMembership[],
  stored: Stored | undefined,
  list: { readonly scope: string; readonly facet: string },
  sort: string,
): string | undefined {
  if (!stored) return undefined;
  const membership = memberships(stored).find(({ scope, facet }) => scope === list.scope && facet === list.facet);
  return membership?.keys[sort];
}

/** The orders in which the lists of a facet are kept; `''` stands for the unfiltered lists. */
export function expectedOrders(
  { facets = {}, hidden, listOrders, storedName }: Resource,
  facet: string,
): readonly string[] {
  if (facet === '') return hidden ? [] : listOrders.whole;
  if (facet === storedName(PARTITION)) return hidden ? listOrders.partition : [];
  return Object.keys(facets).some((field) => storedName(field) === facet) ? listOrders.facet : [];
}

export const expectedReferences = (
  resource: Resource,
  { uid, message, state }: Stored,
): [field: string, value: string, uid: string][] =>
  Object.keys(resource.references ?? {}).flatMap((field) =>
    [...(resource.values[field]?.(message, state) ?? [])].map((value): [string, string, string] => [field, value, uid]),
  );

export const expectedKeys = ({ unique }: Resource, { uid, message, parent }: Stored): { key: string; uid: string }[] =>
  (unique?.(message as never, parent) ?? []).map(({ key }) => ({ key, uid }));

/** `d:<uid> color=red` for the descendants of a uid with a facet value. */
export const describeList = (scope: string, facet: string): string => (facet === '' ? scope : `${scope} ${facet}`);
