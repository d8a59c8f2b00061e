import type { Uid } from '../base/uid.ts';
import { awaitAll } from '../store/await-all.ts';
import type { BulkInsert } from '../store/bulk-insert.ts';
import type { Row, Transaction, Value } from '../store/store.ts';
import type { Resource, Stored } from './definition.ts';
import { withoutParts } from './index/build-in-progress.ts';
import type { PartSet } from './index/index-parts.ts';
import { inLockOrder, type ListMembership, membershipsOf, organizationOfScope, WHOLE_LIST } from './list-membership.ts';

// The listing index: sorted lists of resources with their sizes (tables `list` and `entry`). A page of a List response is
// one seek in it, whatever the size of the list.

export const ADD_TO_LISTS: BulkInsert = {
  into: 'list',
  columns: { scope: 'text', kind: 'text', facet: 'text', n: 'integer' },
  conflict: { key: ['scope', 'kind', 'facet'], sum: 'n' },
  returning: ['id', 'scope', 'kind', 'facet', 'n'],
};
export const SUBTRACT_FROM_LIST = `UPDATE list SET n = n - $4
  WHERE scope = $1 AND kind = $2 AND facet = $3 RETURNING id`;
const FIND_LIST = 'SELECT id FROM list WHERE scope = $1 AND kind = $2 AND facet = $3';
const ENTRIES: BulkInsert = {
  into: 'entry',
  columns: { list: 'integer', sort: 'text', key: 'text', uid: 'text' },
};
const DROP_ENTRY = 'DELETE FROM entry WHERE list = $1 AND sort = $2 AND key = $3 AND uid = $4';

/** A resource before and after a write. `before` is absent for a create, `after` for a delete. */
export interface Change {
  readonly uid: Uid;
  readonly before?: Stored;
  readonly after?: Stored;
}

type Member = Pick<ListMembership, 'uid' | 'keys'>;

/** The changes of one list. A member whose sort key changes is both removed and added. */
interface ListChange {
  readonly scope: string;
  readonly facet: string;
  readonly removed: Member[];
  readonly added: Member[];
  id: number;
}

interface ListRow extends Row {
  readonly id: number;
  readonly scope: string;
  readonly kind: string;
  readonly facet: string;
  readonly n: number;
}

/** The missing parts of an index that is being built, and the changed resources that they have nevertheless. */
export interface PartlyBuilt {
  readonly missing: PartSet;
  isIndexed(uid: string): boolean;
}

/** Updates the lists and entries of changed resources. The size of a list is changed once, however many join it. */
export async function updateListingIndex(
  tx: Transaction,
  resource: Resource,
  changes: readonly Change[],
  partlyBuilt?: PartlyBuilt,
): Promise<void> {
  const lists = listChanges(resource, changes, partlyBuilt);
  await updateSizes(tx, resource, lists);
  const rows: Value[] = [];
  const isMixed = partlyBuilt !== undefined;
  // In index order: an import in random order would write the same index pages again and again.
  for (const { id, removed, added } of lists.sort((a, b) => a.id - b.id)) {
    // A list that does not exist has nothing to remove. `wharf db check` finds what else such damage has changed.
    if (id === 0) continue;
    eachEntry(removed, added, isMixed, (sort, key, uid) => tx.runUnawaited(DROP_ENTRY, id, sort, key, uid));
    eachEntry(added, removed, isMixed, (sort, key, uid) => rows.push(id, sort, key, uid));
  }
  tx.insertUnawaited(ENTRIES, rows);
}

/** Visits the entries of `members` that `others` does not have as well, one sort order after the other. */
function eachEntry(
  members: readonly Member[],
  others: readonly Member[],
  /** Whether some members have orders that others do not have. */
  isMixed: boolean,
  visit: (sort: string, key: string, uid: string) => void,
): void {
  const other = others.length > 0 ? new Map(others.map(({ uid, keys }) => [uid, keys])) : undefined;
  const orders = isMixed
    ? new Set(members.flatMap(({ keys }) => Object.keys(keys)))
    : Object.keys(members[0]?.keys ?? {});
  for (const sort of orders) {
    for (const { uid, keys } of members) {
      const key = keys[sort];
      if (key !== undefined && other?.get(uid)?.[sort] !== key) visit(sort, key, uid);
    }
  }
}

/** Updates the sizes of lists, creates missing lists, and sets the ids of all of them. */
async function updateSizes(tx: Transaction, resource: Resource, lists: readonly ListChange[]): Promise<void> {
  const grown = new Map<string, ListChange>();
  const sizes: Value[] = [];
  const statements: Promise<void>[] = [];
  for (const list of lists) {
    const { scope, facet } = list;
    const growth = list.added.length - list.removed.length;
    if (growth > 0) {
      grown.set(`${scope} ${facet}`, list);
      sizes.push(scope, resource.kind, facet, growth);
      continue;
    }
    statements.push(shrinkList(tx, resource, list, -growth));
  }
  statements.push(growLists(tx, resource, grown, sizes));
  await awaitAll(...statements);
}

async function growLists(
  tx: Transaction,
  resource: Resource,
  grown: ReadonlyMap<string, ListChange>,
  sizes: readonly Value[],
): Promise<void> {
  for (const { id, scope, kind, facet, n } of await tx.insert<ListRow>(ADD_TO_LISTS, sizes)) {
    const list = kind === resource.kind && grown.get(`${scope} ${facet}`);
    if (!list) continue;
    list.id = id;
    // Exact, because the row of the list is locked until the commit. A shared transaction counts others too; if it is
    // too many, this write runs again alone.
    const organization = facet === WHOLE_LIST ? organizationOfScope(scope) : undefined;
    if (organization !== undefined) tx.quotas?.requireResources(organization, kind, n, tx.isShared);
  }
}

async function shrinkList(tx: Transaction, { kind }: Resource, list: ListChange, by: number): Promise<void> {
  const { scope, facet } = list;
  const [row] =
    by > 0
      ? await tx.runReturning<ListRow>(SUBTRACT_FROM_LIST, scope, kind, facet, by)
      : await tx.all<ListRow>(FIND_LIST, scope, kind, facet);
  if (row) list.id = row.id;
  else if (list.added.length > 0) {
    const [created] = await tx.insert<ListRow>(ADD_TO_LISTS, [scope, kind, facet, list.added.length]);
    list.id = created?.id ?? 0;
  }
}

/** The changes of every list, in the order in which transactions lock lists. */
function listChanges(
  resource: Resource,
  changes: readonly Change[],
  partlyBuilt: PartlyBuilt | undefined,
): ListChange[] {
  const lists: ListChange[] = [];
  const scopes = new Map<string, Map<string, ListChange>>();
  const changeOf = ({ scope, facet }: ListMembership): ListChange => {
    let facets = scopes.get(scope);
    if (!facets) {
      facets = new Map();
      scopes.set(scope, facets);
    }
    let list = facets.get(facet);
    if (!list) {
      list = { scope, facet, removed: [], added: [], id: 0 };
      facets.set(facet, list);
      lists.push(list);
    }
    return list;
  };
  const all = membershipsOf(resource);
  const memberships = (stored: Stored): ListMembership[] =>
    !partlyBuilt || partlyBuilt.isIndexed(stored.uid)
      ? all(stored)
      : all(stored).flatMap((each) => withoutParts(each, partlyBuilt.missing) ?? []);
  for (const { before, after } of changes) {
    if (before) for (const each of memberships(before)) changeOf(each).removed.push(each);
    if (after) for (const each of memberships(after)) changeOf(each).added.push(each);
  }
  return lists.sort(inLockOrder);
}
