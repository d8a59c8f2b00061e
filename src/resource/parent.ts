import { notFound, precondition } from '../base/errors.ts';
import { depthOf, MAX_DEPTH, ROOT, type Uid } from '../base/uid.ts';
import type { Reader } from '../store/store.ts';
import type { Resource } from './definition.ts';
import { findUid } from './read.ts';

/**
 * Returns the uid of the parent. Refuses one that does not exist or cannot hold a child. With `tx.forShare` or
 * `tx.forUpdate` as `db`, the parent cannot be deleted before the commit.
 */
export async function requireParent(db: Reader, resource: Resource, parent: string): Promise<Uid> {
  if (depthOf(parent) >= MAX_DEPTH) {
    throw precondition('HIERARCHY_TOO_DEEP', parent, `resources can be nested at most ${MAX_DEPTH} levels deep`);
  }
  const kinds = resource.parents.filter((kind) => kind !== ROOT);
  for (const kind of kinds) {
    const uid = await findUid(db, kind, parent);
    if (uid !== undefined) return uid;
  }
  throw notFound(kinds[0] ?? 'parent', parent);
}
