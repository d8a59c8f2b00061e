import { ROOT } from '../../base/uid.ts';
import type { BulkInsert } from '../../store/bulk-insert.ts';
import { findListingIndex, type ListingIndex } from '../../store/listing-indexes.ts';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Row, Store, Transaction, Value } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { compareText, inLockOrder, type ListMembership, membershipsOf } from '../list-membership.ts';
import { ADD_TO_LISTS } from '../listing-index.ts';
import { COLUMNS, type ResourceRow, toStored } from '../read.ts';
import { sortKeysJson } from '../write.ts';
import { onlyParts } from './build-in-progress.ts';
import { type BuildProgress, findProgress, putProgress } from './build-progress.ts';
import { partSet } from './index-parts.ts';

const NEXT_UIDS = `SELECT uid, parent, indexed, length(body) AS bytes FROM resource
  WHERE kind = $1 AND uid > $2 ORDER BY uid LIMIT $3`;
/** The most rows that a batch reads. Those that are in the index already cost next to nothing. */
const MAX_ROWS = 1_000;
/** The most bytes of messages in a batch, unless one message has more. */
const MAX_BYTES = 512 * 1024;
const LOCK_PARENTS = `SELECT uid FROM resource WHERE kind = $1 AND uid IN (${batchPlaceholders(2)}) ORDER BY uid`;
const LOCK_ROWS = `SELECT ${COLUMNS.join(', ')}, indexed FROM resource
  WHERE kind = $1 AND uid > $2 AND uid <= $3 ORDER BY uid`;
const MARK = 'UPDATE resource SET keys = $3, indexed = $4 WHERE kind = $1 AND uid = $2';
const FIND_LISTS = `SELECT id, scope, facet FROM list WHERE kind = $1 AND facet = $2 AND scope IN (${batchPlaceholders(3)})`;
const ENTRIES: BulkInsert = {
  into: 'entry',
  columns: { list: 'integer', sort: 'text', key: 'text', uid: 'text' },
  conflict: 'skip',
};

interface UidRow extends Row {
  readonly uid: string;
  readonly parent: string;
  readonly indexed: number | null;
  readonly bytes: number;
}
interface LockedRow extends ResourceRow {
  readonly indexed: number | null;
}

export interface BatchResult {
  readonly progress: BuildProgress;
  /** Whether it was the last batch of a pass that found all resources in the index. */
  readonly isComplete: boolean;
  /** How long the transaction took without waiting for others. 0 if it had nothing to add. */
  readonly transactionMs: number;
}

/**
 * Adds up to `limit` resources, from the cursor on, to the parts that are being built, in one short transaction. Resources
 * that another transaction has locked are skipped: the next pass finds them. Returns undefined if the build has been
 * superseded by another declaration.
 */
export async function buildBatch(
  store: Store,
  resource: Resource,
  { kind, generation }: ListingIndex,
  limit: number,
  now: number,
): Promise<BatchResult | undefined> {
  const before = await findProgress(store.reader, kind);
  if (before?.generation !== generation) return undefined;
  const next = firstRows(await store.reader.all<UidRow>(NEXT_UIDS, kind, before.cursor, MAX_ROWS), generation, limit);
  const unmarked = next.filter(({ indexed }) => indexed !== generation);
  return store.write(async (tx) => {
    const begun = performance.now();
    const index = await findListingIndex(tx.forShare, kind);
    const current = await findProgress(tx.forUpdate, kind);
    if (index?.generation !== generation || index.phase !== 'building' || current === undefined) return undefined;
    // Another server has taken over.
    if (current.cursor !== before.cursor || current.pass !== before.pass) {
      return { progress: current, isComplete: false, transactionMs: 0 };
    }
    const last = next.at(-1)?.uid;
    if (last === undefined) {
      const progress = { ...current, cursor: '', pass: current.pass + 1, found: 0, updated: now };
      await putProgress(tx, progress);
      return { progress, isComplete: current.found === 0, transactionMs: 0 };
    }
    const indexed = unmarked.length > 0 ? await indexRows(tx, resource, index, before.cursor, last, unmarked) : 0;
    const progress = {
      ...current,
      ...{ cursor: last, found: current.found + unmarked.length, done: current.done + indexed, updated: now },
    };
    await putProgress(tx, progress);
    const transactionMs = unmarked.length > 0 ? performance.now() - begun : 0;
    return { progress, isComplete: false, transactionMs };
  });
}

/** Returns the first rows, until `limit` of them have to be added to the index or they have MAX_BYTES together. */
function firstRows(rows: readonly UidRow[], generation: number, limit: number): readonly UidRow[] {
  let bytes = 0;
  let unmarked = 0;
  const end = rows.findIndex((row, at) => {
    bytes += Number(row.bytes);
    if (row.indexed !== generation) unmarked++;
    return unmarked > limit || (bytes > MAX_BYTES && at > 0);
  });
  return end < 0 ? rows : rows.slice(0, end);
}

/** Returns how many resources it added to the index. */
async function indexRows(
  tx: Transaction,
  resource: Resource,
  { building, generation }: ListingIndex,
  after: string,
  upTo: string,
  unmarked: readonly UidRow[],
): Promise<number> {
  await lockParents(tx, resource, unmarked);
  const rows = await tx.forUpdateSkipLocked.all<LockedRow>(LOCK_ROWS, resource.kind, after, upTo);
  const added = rows.filter(({ indexed }) => indexed !== generation).map((row) => toStored(resource, row));
  const parts = partSet(building);
  const memberships = added.flatMap(membershipsOf(resource));
  await addEntries(
    tx,
    resource.kind,
    memberships.flatMap((membership) => onlyParts(membership, parts) ?? []),
  );
  for (const stored of added) {
    tx.runUnawaited(MARK, resource.kind, stored.uid, sortKeysJson(resource, stored), generation);
  }
  return added.length;
}

interface List {
  readonly scope: string;
  readonly facet: string;
  readonly isCounted: boolean;
  readonly rows: [sort: string, key: string, uid: string][];
  size: number;
}

/** What a resource has in a list, and whether the size of the list does not include it yet. */
export interface MembershipToAdd {
  readonly membership: ListMembership;
  readonly isCounted: boolean;
}

/** Adds entries to lists, unless they are there already. Returns the ids of the lists. */
export async function addEntries(
  tx: Transaction,
  kind: string,
  memberships: readonly MembershipToAdd[],
): Promise<number[]> {
  const lists = new Map<string, List>();
  for (const { membership, isCounted } of memberships) {
    const { scope, facet, uid, keys } = membership;
    const list = lists.get(`${scope} ${facet}`) ?? { scope, facet, isCounted, rows: [], size: 0 };
    lists.set(`${scope} ${facet}`, list);
    list.size++;
    for (const [sort, key] of Object.entries(keys)) list.rows.push([sort, key, uid]);
  }
  const ids = await findOrCreateLists(tx, kind, [...lists.values()].sort(inLockOrder));
  const values: Value[] = [];
  for (const [id, { rows }] of [...ids].sort(([a], [b]) => a - b)) {
    // In index order, as in ../listing-index.ts.
    rows.sort(([aSort, aKey], [bSort, bKey]) => compareText(aSort, bSort) || compareText(aKey, bKey));
    for (const [sort, key, uid] of rows) values.push(id, sort, key, uid);
  }
  tx.insertUnawaited(ENTRIES, values);
  return [...ids.keys()];
}

/**
 * Locks the parents of resources, as a create does: the deletion of a parent removes the entries of all children, and must
 * not run at the same time.
 */
export async function lockParents(
  tx: Transaction,
  resource: Resource,
  children: readonly { readonly parent: string }[],
): Promise<void> {
  if (tx.isOnlyWriter) return;
  const parents = [...new Set(children.map(({ parent }) => parent))].filter((parent) => parent !== ROOT).sort();
  for (const kind of resource.parents.filter((each) => each !== ROOT)) {
    for (const some of parameterBatches(parents)) await tx.forShare.all(LOCK_PARENTS, kind, ...some);
  }
}

/** Adds to the sizes of the lists whose sizes belong to the parts. Returns all lists by their ids. */
async function findOrCreateLists(tx: Transaction, kind: string, lists: readonly List[]): Promise<Map<number, List>> {
  const byKey = new Map(lists.map((list) => [`${list.scope} ${list.facet}`, list]));
  const found = new Map<number, List>();
  const take = ({ id, scope, facet }: ListRow): void => {
    const list = byKey.get(`${scope} ${facet}`);
    if (!list) return;
    found.set(id, list);
    byKey.delete(`${scope} ${facet}`);
  };
  // Only read: a lock on the lists of an organization would make all its writers wait.
  const scopesByFacet = Map.groupBy(
    lists.filter(({ isCounted }) => !isCounted),
    ({ facet }) => facet,
  );
  for (const [facet, ofFacet] of scopesByFacet) {
    for (const some of parameterBatches(ofFacet.map(({ scope }) => scope))) {
      for (const row of await tx.all<ListRow>(FIND_LISTS, kind, facet, ...some)) take(row);
    }
  }
  const sizes = [...byKey.values()].flatMap(({ scope, facet, isCounted, size }) => [
    ...[scope, kind, facet, isCounted ? size : 0],
  ]);
  for (const row of await tx.insert<ListRow>(ADD_TO_LISTS, sizes)) take(row);
  return found;
}

interface ListRow extends Row {
  readonly id: number;
  readonly scope: string;
  readonly facet: string;
}
