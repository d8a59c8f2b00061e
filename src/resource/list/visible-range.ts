import { invalid } from '../../base/errors.ts';
import {
  ancestorsOf,
  isWithin,
  isWithinAny,
  type ParentUid,
  parentOf,
  parseUid,
  ROOT,
  type Uid,
} from '../../base/uid.ts';
import type { UIDPFilter } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Resource } from '../definition.ts';

/** The descendants or the children of a uid. The listing index has a sorted list of each. */
export interface Collection {
  readonly of: 'descendants' | 'children';
  readonly uid: ParentUid;
}

export interface CollectionRange {
  readonly collections: readonly Collection[];
  /**
   * A uid to omit. The listing index has a scope among its own descendants, but a filter for descendants excludes it.
   */
  readonly excludedUid?: Uid | undefined;
}

/** Where a list reads: some collections, or a few uids. Nothing outside of it is ever read. */
export type VisibleRange = CollectionRange | { readonly uids: readonly Uid[] };

const MAX_IDS = 1000;

/** Returns the part of the hierarchy that matches the filter and is visible to the caller. */
export function visibleRange(resource: Resource, hierarchy: Hierarchy, reach: readonly Uid[]): VisibleRange {
  const containerOf = containerIn(resource);
  const isBelow = (uid: Uid, scope: Uid) => isWithin(containerOf(uid), scope);
  const isReached = (uid: ParentUid) => isWithinAny(uid, reach);
  const isVisible = (uid: Uid) =>
    isReached(resource.isScope ? uid : containerOf(uid)) || (resource.rootIsPublic === true && parentOf(uid) === ROOT);

  const { ids, ancestorsOf: lower, descendantsOf: upper, childrenOf: parent } = hierarchy;

  const candidates = ids ?? (lower === undefined ? undefined : ancestorsOf(lower));
  if (candidates) {
    const matches = (uid: Uid) =>
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
  parent: ParentUid,
  upper: Uid | undefined,
  reach: readonly Uid[],
): VisibleRange {
  if (upper !== undefined && !isWithin(parent, upper)) return { uids: [] };
  const all: VisibleRange = {
    collections: [{ of: resource.nests ? 'children' : 'descendants', uid: parent }],
  };
  if (parent === ROOT ? resource.rootIsPublic : isWithinAny(parent, reach)) return all;
  // The caller does not reach the parent, but may reach some of its children.
  return { uids: resource.isScope ? reach.filter((scope) => containerIn(resource)(scope) === parent).sort() : [] };
}

const descendantsOf = (uid: Uid): Collection => ({ of: 'descendants', uid });

/** Returns the parent of a resource by its uid. A resource that shares the uid of its parent is its own container. */
const containerIn = (resource: Resource): ((uid: Uid) => ParentUid) =>
  resource.sharesParentUid ? (uid) => uid : parentOf;

/** The fields of a hierarchy filter that are set. */
export interface Hierarchy {
  ids?: readonly Uid[];
  ancestorsOf?: Uid;
  descendantsOf?: Uid;
  childrenOf?: ParentUid;
}

export function readHierarchy(filter: UIDPFilter | undefined): Hierarchy {
  const hierarchy: Hierarchy = {};
  if (!filter) return hierarchy;
  if (filter.ids.length > MAX_IDS) throw invalid('uidp.ids', `must name at most ${MAX_IDS} uids`);
  if (filter.ids.length > 0) hierarchy.ids = filter.ids.map((uid, at) => parseUid(`uidp.ids[${at}]`, uid));
  if (filter.ancestorsOf !== '') hierarchy.ancestorsOf = parseUid('uidp.ancestors_of', filter.ancestorsOf);
  if (filter.descendantsOf !== '') hierarchy.descendantsOf = parseUid('uidp.descendants_of', filter.descendantsOf);
  if (filter.childrenOf !== '') hierarchy.childrenOf = parseUid('uidp.children_of', filter.childrenOf);
  if (filter.inRoot) {
    if (hierarchy.childrenOf !== undefined) throw invalid('uidp.in_root', 'cannot be combined with uidp.children_of');
    hierarchy.childrenOf = ROOT;
  }
  return hierarchy;
}
