import { precondition } from '../base/errors.ts';
import type { Row, Transaction } from '../store/store.ts';
import type { Resource, Stored } from './definition.ts';
import { removeChildren } from './delete-children.ts';
import { scopeKey } from './list-membership.ts';
import type { WriteContext } from './operation.ts';
import { find, findChildren } from './read.ts';
import { remove } from './write.ts';

const MEMBERS = "SELECT kind, scope FROM list WHERE scope IN ($1, $2) AND facet = '' AND n > 0 ORDER BY kind";
const FORGET_LISTS = 'DELETE FROM list WHERE scope = $1 OR scope = $2';

/** Looks resources up by kind, so that a deletion can take children of other kinds along. */
export type Kinds = ReadonlyMap<string, Resource>;

/** Deletes one resource with the children that go along, or says which child forbids it. Nothing when there is none. */
export async function removeTree(
  ctx: WriteContext,
  kinds: Kinds,
  resource: Resource,
  uid: string,
): Promise<Stored | undefined> {
  const tx = ctx.db;
  const stored = await find(tx, resource, uid, tx.lock.update);
  if (!stored) return undefined;
  await resource.beforeDelete?.(ctx, stored);
  for (const kind of await childKinds(tx, kinds, resource, uid)) {
    const child = kinds.get(kind);
    if (!child || !resource.cascade?.includes(kind)) {
      throw precondition(
        'RESOURCE_NOT_EMPTY',
        uid,
        `cannot delete ${resource.kind} with child ${child?.plural ?? kind}`,
      );
    }
    if (isLeaf(kinds, child)) await removeChildren(tx, child, uid);
    else for (const one of await findChildren(tx, child, uid)) await removeTree(ctx, kinds, child, one.uid);
  }
  await remove(tx, resource, stored);
  // Empty by now, and nothing can join them again: uids are never reused.
  if (!resource.sharesParentUid) await tx.run(FORGET_LISTS, scopeKey('children', uid), scopeKey('descendants', uid));
  return stored;
}

/** Whether nothing can lie below it, nor anything else happen when it goes. */
const isLeaf = (kinds: Kinds, { kind, beforeDelete, sharesParentUid }: Resource): boolean =>
  !beforeDelete && !sharesParentUid && ![...kinds.values()].some(({ parents }) => parents.includes(kind));

interface Member extends Row {
  readonly kind: string;
  readonly scope: string;
}

/** The kinds of which something lies directly under `uid`. */
async function childKinds(tx: Transaction, kinds: Kinds, resource: Resource, uid: string): Promise<string[]> {
  const [children, descendants] = [scopeKey('children', uid), scopeKey('descendants', uid)];
  const members = await tx.all<Member>(MEMBERS, children, descendants);
  const direct = members.filter(({ kind, scope }) => {
    const child = kinds.get(kind);
    // A kind that a newer server wrote is in the way like any other.
    if (!child) return true;
    return child.parents.includes(resource.kind) && scope === (child.nests ? children : descendants);
  });
  return [...new Set(direct.map(({ kind }) => kind))];
}
