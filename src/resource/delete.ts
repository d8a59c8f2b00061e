import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { precondition } from '../base/errors.ts';
import type { Row, Transaction } from '../store/store.ts';
import type { Resource, Stored } from './definition.ts';
import { deleteChildren } from './delete-children.ts';
import { scopeKey } from './list-membership.ts';
import type { WriteContext } from './operation.ts';
import { find, findChildren } from './read.ts';
import { deleteOne } from './write.ts';

const MEMBERS = "SELECT kind, scope FROM list WHERE scope IN ($1, $2) AND facet = '' AND n > 0 ORDER BY kind";
const DROP_LISTS = 'DELETE FROM list WHERE scope = $1 OR scope = $2';

/** All declared resources by kind, so that a deletion can include children of other kinds. */
export type ResourcesByKind = ReadonlyMap<string, Resource>;

/**
 * Deletes a resource with the children that its declaration cascades to, or refuses when it has others. Returns undefined
 * when there is no such resource.
 */
export async function deleteTree<S extends DescMessage>(
  ctx: WriteContext,
  kinds: ResourcesByKind,
  resource: Resource<S>,
  uid: string,
): Promise<Stored<MessageShape<S>> | undefined> {
  const tx = ctx.db;
  const stored = await find(tx.forUpdate, resource, uid);
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
    if (isLeaf(kinds, child)) await deleteChildren(tx, child, stored.uid);
    else for (const one of await findChildren(tx, child, uid)) await deleteTree(ctx, kinds, child, one.uid);
  }
  await deleteOne(tx, resource, stored);
  // Its lists are empty now, and stay so because uids are never reused.
  if (!resource.sharesParentUid) await tx.run(DROP_LISTS, scopeKey('children', uid), scopeKey('descendants', uid));
  return stored;
}

/** Whether it can have no children and needs nothing done before it is deleted. */
const isLeaf = (kinds: ResourcesByKind, { kind, beforeDelete, sharesParentUid }: Resource): boolean =>
  !beforeDelete && !sharesParentUid && ![...kinds.values()].some(({ parents }) => parents.includes(kind));

interface Member extends Row {
  readonly kind: string;
  readonly scope: string;
}

/** The kinds of the children of `uid`. */
async function childKinds(tx: Transaction, kinds: ResourcesByKind, resource: Resource, uid: string): Promise<string[]> {
  const [children, descendants] = [scopeKey('children', uid), scopeKey('descendants', uid)];
  const members = await tx.all<Member>(MEMBERS, children, descendants);
  const direct = members.filter(({ kind, scope }) => {
    const child = kinds.get(kind);
    // A kind that only a newer server knows prevents the deletion too.
    if (!child) return true;
    return child.parents.includes(resource.kind) && scope === (child.nests ? children : descendants);
  });
  return [...new Set(direct.map(({ kind }) => kind))];
}
