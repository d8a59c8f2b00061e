import type { MaybePromise } from '../../base/maybe-promise.ts';
import { findListingIndex } from '../../store/listing-indexes.ts';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Row, Transaction } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import type { ListMembership } from '../list-membership.ts';
import { facetOfList, missingParts, type PartSet } from './index-parts.ts';

const FIND_MARKS = `SELECT uid, indexed FROM resource WHERE kind = $1 AND uid IN (${batchPlaceholders(2)}) ORDER BY uid`;

/**
 * The state of a listing index of which some parts are missing. A resource is in the missing parts if its row is marked
 * with the generation of the index. So a change of a resource that is not marked yet leaves the missing parts alone, and
 * the builder adds it to them later (build-batch.ts).
 */
export interface BuildInProgress {
  readonly missing: PartSet;
  readonly generation: number;
  /** Whether new resources are added to the missing parts right away. */
  readonly isBuilding: boolean;
}

/** Returns undefined if no part is missing. Otherwise the index stays in its phase until the transaction ends. */
export function findBuildInProgress(tx: Transaction, resource: Resource): MaybePromise<BuildInProgress | undefined> {
  return missingParts(resource, tx.listingIndexes?.get(resource.kind)) && readBuildInProgress(tx, resource);
}

async function readBuildInProgress(tx: Transaction, resource: Resource): Promise<BuildInProgress | undefined> {
  const index = await findListingIndex(tx.forShare, resource.kind);
  const missing = missingParts(resource, index);
  if (!index || !missing) return undefined;
  const isBuilding = index.phase === 'building' && [...missing.parts].every((part) => index.building.has(part));
  return { missing, generation: index.generation, isBuilding };
}

interface MarkRow extends Row {
  readonly uid: string;
  readonly indexed: number | null;
}

/** Returns those of `uids` that are in the missing parts. Locks their rows. */
export async function findMarked(
  tx: Transaction,
  { kind }: Resource,
  { generation, isBuilding }: BuildInProgress,
  uids: readonly string[],
): Promise<ReadonlySet<string>> {
  const marked = new Set<string>();
  if (!isBuilding) return marked;
  for (const some of parameterBatches(uids)) {
    for (const { uid, indexed } of await tx.forUpdate.all<MarkRow>(FIND_MARKS, kind, ...some)) {
      if (indexed === generation) marked.add(uid);
    }
  }
  return marked;
}

/** Returns the membership without `parts`, or undefined if nothing of it is left. */
export function withoutParts(membership: ListMembership, parts: PartSet): ListMembership | undefined {
  const facet = facetOfList(membership.facet);
  if (facet !== '' && parts.hasFacet(facet)) return undefined;
  return { ...membership, keys: keysWhere(membership, (order) => !parts.hasEntries(facet, order)) };
}

/** Returns what `parts` have of the membership, and whether the size of the list belongs to them too. */
export function onlyParts(
  membership: ListMembership,
  parts: PartSet,
): { readonly membership: ListMembership; readonly isCounted: boolean } | undefined {
  const facet = facetOfList(membership.facet);
  if (facet !== '' && parts.hasFacet(facet)) return { membership, isCounted: true };
  const keys = keysWhere(membership, (order) => parts.hasEntries(facet, order));
  return Object.keys(keys).length === 0 ? undefined : { membership: { ...membership, keys }, isCounted: false };
}

const keysWhere = ({ keys }: ListMembership, isWanted: (order: string) => boolean): ListMembership['keys'] =>
  Object.fromEntries(Object.entries(keys).filter(([order]) => isWanted(order)));
