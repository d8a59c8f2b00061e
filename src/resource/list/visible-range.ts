import { invalid } from '../../base/errors.ts';
import { ancestorsOf, isUid, isWithin, isWithinAny, parentOf, ROOT } from '../../base/uid.ts';
import type { UIDPFilter } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Resource } from '../definition.ts';

/** A sorted collection kept by the listing index: what lies below a uid, or directly under it. */
export interface Collection {
  readonly of: 'descendants' | 'children';
  readonly uid: string;
}

export interface CollectionRange {
  readonly collections: readonly Collection[];
  /** A scope is listed among its own descendants. Whoever asks for what lies below it does not mean itself. */
  readonly except?: string | undefined;
}

/** Where to look: a few collections, or a handful of uids. Nothing outside of it is ever read. */
export type VisibleRange = CollectionRange | { readonly uids: readonly string[] };

const MAX_IDS = 1000;

/** The part of the hierarchy that the filter asks for and the caller may see. */
export function visibleRange(
  resource: Resource,
  filter: UIDPFilter | undefined,
  reach: readonly string[],
): VisibleRange {
  const holder = holderIn(resource);
  const isBelow = (uid: string, scope: string) => isWithin(holder(uid), scope);
  const isReached = (uid: string) => isWithinAny(uid, reach);
  const isVisible = (uid: string) =>
    isReached(resource.isScope ? uid : holder(uid)) || (resource.rootIsPublic === true && parentOf(uid) === ROOT);

  const asked = filter ? readFilter(filter) : {};
  const { ids, ancestorsOf: lower, descendantsOf: upper, childrenOf: parent } = asked;

  const finite = ids ?? (lower === undefined ? undefined : ancestorsOf(lower));
  if (finite) {
    const matches = (uid: string) =>
      isVisible(uid) &&
      (lower === undefined || (lower !== uid && isWithin(lower, uid))) &&
      (upper === undefined || isBelow(uid, upper)) &&
      (parent === undefined || holder(uid) === parent);
    return { uids: [...new Set(finite)].filter(matches).sort() };
  }
  if (parent !== undefined) return visibleChildren(resource, parent, upper, reach);
  if (upper !== undefined) {
    const except = resource.isScope && !resource.sharesParentUid ? upper : undefined;
    return isReached(upper)
      ? { collections: [everything(upper)], except }
      : { collections: reach.filter((scope) => isWithin(parentOf(scope), upper)).map(everything) };
  }
  const collections = reach.map(everything);
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
  // Out of reach itself, but some of its children may be where the caller's reach begins.
  return { uids: resource.isScope ? reach.filter((scope) => holderIn(resource)(scope) === parent).sort() : [] };
}

const everything = (uid: string): Collection => ({ of: 'descendants', uid });

/** The uid of what a resource lies in, by its own uid. */
const holderIn = (resource: Resource): ((uid: string) => string) =>
  resource.sharesParentUid ? (uid) => uid : parentOf;

interface Asked {
  ids?: readonly string[];
  ancestorsOf?: string;
  descendantsOf?: string;
  childrenOf?: string;
}

function readFilter(filter: UIDPFilter): Asked {
  const asked: Asked = {};
  if (filter.ids.length > MAX_IDS) throw invalid('uidp.ids', `must name at most ${MAX_IDS} uids`);
  for (const [at, uid] of filter.ids.entries()) checkUid(`uidp.ids[${at}]`, uid);
  if (filter.ids.length > 0) asked.ids = filter.ids;
  if (filter.ancestorsOf !== '') asked.ancestorsOf = checkUid('uidp.ancestors_of', filter.ancestorsOf);
  if (filter.descendantsOf !== '') asked.descendantsOf = checkUid('uidp.descendants_of', filter.descendantsOf);
  if (filter.childrenOf !== '') asked.childrenOf = checkUid('uidp.children_of', filter.childrenOf);
  if (filter.inRoot) {
    if (asked.childrenOf !== undefined) throw invalid('uidp.in_root', 'cannot be combined with uidp.children_of');
    asked.childrenOf = ROOT;
  }
  return asked;
}

function checkUid(field: string, uid: string): string {
  if (!isUid(uid)) throw invalid(field, 'must be a uid: 40 hex digits, then /-separated parts of 16');
  return uid;
}
