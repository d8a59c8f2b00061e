import { notFound } from '../../base/errors.ts';
import { isWithin, isWithinAny, parentOf, ROOT, type Uid } from '../../base/uid.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { exists } from '../read.ts';
import type { Hierarchy } from './visible-range.ts';

/** A uid that a List request names as the place to list, and the kinds that it may have. */
interface NamedPlace {
  readonly uid: string;
  readonly kinds: readonly string[];
  /** What errors call it. It depends on the request only, so that it tells nothing about what exists. */
  readonly kind: string;
}

/** The kind by which errors call a place that can be of several kinds. */
const ANY_KIND = 'resource';

/**
 * Refuses a List request that names a place which does not exist or which the caller cannot see. The error is the same
 * for both. A place is visible if the caller reaches it with the capabilities of the method, or if it is above a group
 * that the caller reaches, whose uid names it. `parent` is the value of the resource's `parentFilter`.
 */
export async function requirePlaces(
  db: Reader,
  resource: Resource,
  hierarchy: Hierarchy,
  parent: string,
  reach: readonly Uid[],
  allKinds: Iterable<string>,
): Promise<void> {
  for (const { uid, kinds, kind } of namedPlaces(resource, hierarchy, parent, allKinds)) {
    const isVisible = isWithinAny(uid, reach) || reach.some((scope) => isWithin(scope, uid));
    if (!isVisible || !(await existsAsAny(db, kinds, uid))) throw notFound(kind, uid);
  }
}

function namedPlaces(
  resource: Resource,
  { childrenOf, descendantsOf, ancestorsOf }: Hierarchy,
  parent: string,
  allKinds: Iterable<string>,
): NamedPlace[] {
  const parents = resource.parents.filter((kind) => kind !== ROOT);
  const [parentKind = ANY_KIND] = parents;
  // All resources are in groups, at any depth.
  const containers = [...new Set(['group', ...parents])];
  const places: NamedPlace[] = [];
  if (childrenOf !== undefined && childrenOf !== ROOT) {
    places.push({ uid: childrenOf, kinds: containers, kind: parentKind });
  }
  if (descendantsOf !== undefined) {
    const isGroup = containers.length === 1 || parentOf(descendantsOf) === ROOT;
    places.push({ uid: descendantsOf, kinds: containers, kind: isGroup ? 'group' : ANY_KIND });
  }
  if (ancestorsOf !== undefined) {
    places.push({ uid: ancestorsOf, kinds: [...new Set([...containers, ...allKinds])], kind: ANY_KIND });
  }
  if (parent !== '') places.push({ uid: parent, kinds: parents, kind: parentKind });
  return places;
}

async function existsAsAny(db: Reader, kinds: readonly string[], uid: string): Promise<boolean> {
  for (const kind of kinds) if (await exists(db, kind, uid)) return true;
  return false;
}
