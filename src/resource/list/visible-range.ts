import { invalid } from '../../base/errors.ts';
import { ancestorsOf, isUid, isWithin, isWithinAny, parentOf, ROOT } from '../../base/uid.ts';
import type { UIDPFilter } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Resource } from '../definition.ts';

/** The descendants or the children of a uid. The listing index has a sorted list of each. */
export interface Collection {
  readonly of: 'descendants' | 'children';
  readonly uid: string;
}

export interface CollectionRange {
  readonly collections: readonly Collection[];
  /**
   * A uid to omit. The listing index has a scope among its own descendants, but a filter for descendants excludes it.
   */
  readonly excludedUid?: string | undefined;
}

/** Where a list reads: some collections, or a few uids. Nothing outside of it is ever read. */
export type VisibleRange = CollectionRange | { readonly uids: readonly string[] };

const MAX_IDS = 1000;

/** Returns the part of the hierarchy that matches the filter and is visible to the caller. */
export function visibleRange(
  resource: Resource,
  filter: UIDPFilter | undefined,
  reach: readonly string[],
): VisibleRange {
  const containerOf = containerIn(resource);
  const isBelow = (uid: string, scope: string) => isWithin(containerOf(uid), scope);
  const isReached = (uid: string) => isWithinAny(uid, reach);
  const isVisible = (uid: string) =>
    isReached(resource.isScope ? uid : containerOf(uid)) || (resource.rootIsPublic === true && parentOf(uid) === ROOT);

  const hierarchy = filter ? readFilter(filter) : {};
  const { ids, ancestorsOf: lower, descendantsOf: upper, childrenOf: parent } = hierarchy;

  const candidates = ids ?? (lower === undefined ? undefined : ancestorsOf(lower));
  if (candidates) {
    const matches = (uid: string) =>
      isVisible(uid) &&
      (lower === undefined || (lower !== uid && isWithin(lower, uid))) &&
      (upper === undefined || isBelow(uid, upper)) &&
      (parent === undefined || containerOf(uid) === parent);
    return { uids: [...new Set(candidates)].filter(matches).sort() };
  }
  if (parent !== undefined) return visibleChildren(resource, parent, upper, reach);
  if (upper !== undefined) {
    const excludedUid = resource.isScope && !resource.sharesParentUid ? upper : undefined;
    return isReached(upper)
      ? { collections: [descendantsOf(upper)], excludedUid }
      : { collections: reach.filter((scope) => isWithin(parentOf(scope), upper)).map(descendantsOf) };
  }
  const collections = reach.map(descendantsOf);
  if (resource.rootIsPublic) collections.push({ of: 'children', uid: ROOT });
  return { collections };
}

function visibleChildren(
  resource: Resource,
  parent: string,
  upper: string | undefined,
  reach: readonly string[],
): VisibleRange {
  if (upper !== undefined && !isWithin(parent, upper)) return { uids: [] };
  const all: VisibleRange = {
    collections: [{ of: resource.nests ? 'children' : 'descendants', uid: parent }],
  };
  if (parent === ROOT ? resource.rootIsPublic : isWithinAny(parent, reach)) return all;
  // The caller does not reach the parent, but may reach some of its children.
  return { uids: resource.isScope ? reach.filter((scope) => containerIn(resource)(scope) === parent).sort() : [] };
}

const descendantsOf = (uid: string): Collection => ({ of: 'descendants', uid });

/** Returns the parent of a resource by its uid. A resource that shares the uid of its parent is its own container. */
const containerIn = (resource: Resource): ((uid: string) => string) =>
  resource.sharesParentUid ? (uid) => uid : parentOf;

/** The fields of a hierarchy filter that are set. */
interface Hierarchy {
  ids?: readonly string[];
  ancestorsOf?: string;
  descendantsOf?: string;
  childrenOf?: string;
}

function readFilter(filter: UIDPFilter): Hierarchy {
  const hierarchy: Hierarchy = {};
  if (filter.ids.length > MAX_IDS) throw invalid('uidp.ids', `must name at most ${MAX_IDS} uids`);
  for (const [at, uid] of filter.ids.entries()) checkUid(`uidp.ids[${at}]`, uid);
  if (filter.ids.length > 0) hierarchy.ids = filter.ids;
  if (filter.ancestorsOf !== '') hierarchy.ancestorsOf = checkUid('uidp.ancestors_of', filter.ancestorsOf);
  if (filter.descendantsOf !== '') hierarchy.descendantsOf = checkUid('uidp.descendants_of', filter.descendantsOf);
  if (filter.childrenOf !== '') hierarchy.childrenOf = checkUid('uidp.children_of', filter.childrenOf);
  if (filter.inRoot) {
    if (hierarchy.childrenOf !== undefined) throw invalid('uidp.in_root', 'cannot be combined with uidp.children_of');
    hierarchy.childrenOf = ROOT;
  }
  return hierarchy;
}

function checkUid(field: string, uid: string): string {
  if (!isUid(uid)) throw invalid(field, 'must be a uid: 40 hex digits, then /-separated parts of 16');
  return uid;
}
