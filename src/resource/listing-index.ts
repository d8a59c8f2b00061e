import { together } from '../store/await-all.ts';
import type { Insertion } from '../store/bulk-insert.ts';
import type { Row, Transaction, Value } from '../store/store.ts';
import type { Resource, Stored } from './definition.ts';
import { inLockOrder, type Membership, membershipsOf } from './list-membership.ts';

const JOIN_LISTS: Insertion = {
  into: 'list',
  columns: { scope: 'text', kind: 'text', facet: 'text', n: 'integer' },
  conflict: { key: ['scope', 'kind', 'facet'], sum: 'n' },
  returning: ['id', 'scope', 'kind', 'facet'],
};
const LEAVE_LIST = 'UPDATE list SET n = n - $4 WHERE scope = $1 AND kind = $2 AND facet = $3 RETURNING id';
const FIND_LIST = 'SELECT id FROM list WHERE scope = $1 AND kind = $2 AND facet = $3';
const ENTRIES: Insertion = {
  into: 'entry',
  columns: { list: 'integer', sort: 'text', key: 'text', uid: 'text' },
};
const DROP_ENTRY = 'DELETE FROM entry WHERE list = $1 AND sort = $2 AND key = $3 AND uid = $4';

/** What a resource was, and what it has become. */
export interface Change {
  readonly uid: string;
  readonly before?: Stored;
  readonly after?: Stored;
}

type Member = Pick<Membership, 'uid' | 'keys'>;

/** What happens to one list. A member may leave it and join it again in another place. */
interface ListChange {
  readonly scope: string;
  readonly facet: string;
  readonly left: Member[];
  readonly joined: Member[];
  id: number;
}

interface ListRow extends Row {
  readonly id: number;
  readonly scope: string;
  readonly kind: string;
  readonly facet: string;
}

/** Brings the listing index from what it was to what it must be. A list that many join is counted up once. */
export async function relist(tx: Transaction, resource: Resource, changes: readonly Change[]): Promise<void> {
  const lists = listChanges(resource, changes);
  await countMembers(tx, resource, lists);
  const added: Value[] = [];
  // In the order of the index: an import that jumps about in it writes the same pages again and again.
  for (const { scope, facet, id, left, joined } of lists.sort((a, b) => a.id - b.id)) {
    if (id === 0) throw new Error(`listing index lost ${scope} ${facet} of ${resource.kind}`);
    eachEntry(left, joined, (sort, key, uid) => tx.post(DROP_ENTRY, id, sort, key, uid));
    eachEntry(joined, left, (sort, key, uid) => added.push(id, sort, key, uid));
  }
  tx.postRows(ENTRIES, added);
}

/** The entries of `members` that are not also among those of `others`, in the order of sorts. */
function eachEntry(
  members: readonly Member[],
  others: readonly Member[],
  visit: (sort: string, key: string, uid: string) => void,
): void {
  const other = others.length > 0 ? new Map(others.map(({ uid, keys }) => [uid, keys])) : undefined;
  for (const sort of Object.keys(members[0]?.keys ?? {})) {
    for (const { uid, keys } of members) {
      const key = keys[sort] ?? '';
      if (other?.get(uid)?.[sort] !== key) visit(sort, key, uid);
    }
  }
}

/** Counts members in and out, and finds the ids of the lists on the way. */
async function countMembers(tx: Transaction, resource: Resource, lists: readonly ListChange[]): Promise<void> {
  const grown = new Map<string, ListChange>();
  const counts: Value[] = [];
  const finding: Promise<void>[] = [];
  for (const list of lists) {
    const { scope, facet } = list;
    const more = list.joined.length - list.left.length;
    if (more > 0) {
      grown.set(`${scope} ${facet}`, list);
      counts.push(scope, resource.kind, facet, more);
      continue;
    }
    finding.push(findList(tx, resource, list, more));
  }
  finding.push(joinLists(tx, resource, grown, counts));
  await together(...finding);
}

async function joinLists(
  tx: Transaction,
  resource: Resource,
  grown: ReadonlyMap<string, ListChange>,
  counts: readonly Value[],
): Promise<void> {
  for (const { id, scope, kind, facet } of await tx.insert<ListRow>(JOIN_LISTS, counts)) {
    const list = kind === resource.kind && grown.get(`${scope} ${facet}`);
    if (list) list.id = id;
  }
}

async function findList(tx: Transaction, { kind }: Resource, list: ListChange, more: number): Promise<void> {
  const { scope, facet } = list;
  const row = await (more < 0
    ? tx.get<ListRow>(LEAVE_LIST, scope, kind, facet, -more)
    : tx.get<ListRow>(FIND_LIST, scope, kind, facet));
  if (row) list.id = row.id;
}

/** Every list that changes, in the order in which transactions lock lists. */
function listChanges(resource: Resource, changes: readonly Change[]): ListChange[] {
  const lists: ListChange[] = [];
  const scopes = new Map<string, Map<string, ListChange>>();
  const changeOf = ({ scope, facet }: Membership): ListChange => {
    let facets = scopes.get(scope);
    if (!facets) {
      facets = new Map();
      scopes.set(scope, facets);
    }
    let list = facets.get(facet);
    if (!list) {
      list = { scope, facet, left: [], joined: [], id: 0 };
      facets.set(facet, list);
      lists.push(list);
    }
    return list;
  };
  const memberships = membershipsOf(resource);
  for (const { before, after } of changes) {
    if (before) for (const each of memberships(before)) changeOf(each).left.push(each);
    if (after) for (const each of memberships(after)) changeOf(each).joined.push(each);
  }
  return lists.sort(inLockOrder);
}
