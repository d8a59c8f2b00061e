import { descendantRange } from '../../base/uid.ts';
import type { BulkInsert } from '../../store/bulk-insert.ts';
import type { ListingIndexes } from '../../store/listing-indexes.ts';
import type { Row, Store, Transaction } from '../../store/store.ts';
import type { Resource, Stored } from '../definition.ts';
import { addEntries, lockParents } from '../index/build-batch.ts';
import { facetOfList } from '../index/index-parts.ts';
import { WHOLE_LIST } from '../list-membership.ts';
import { findAll } from '../read.ts';
import { sortKeysJson } from '../write.ts';
import { findExtraKeys, findExtraReferences, type KeyRow, type ReferenceRow } from './check-extra-rows.ts';
import type { EntryRow, ListRow } from './check-lists.ts';
import { expectedKey, expectedKeys, expectedMemberships, expectedOrders, expectedReferences } from './expected-rows.ts';

const KEYS: BulkInsert = {
  into: 'natural_key',
  columns: { kind: 'text', key: 'text', uid: 'text' },
  conflict: 'skip',
};
const REFERENCES: BulkInsert = {
  into: 'reference',
  columns: { kind: 'text', field: 'text', value: 'text', uid: 'text' },
  conflict: 'skip',
};
const SET_KEYS = `UPDATE resource SET keys = $3, indexed = coalesce($4, indexed)
  WHERE kind = $1 AND uid = $2`;
const DROP_ENTRY = 'DELETE FROM entry WHERE list = $1 AND sort = $2 AND key = $3 AND uid = $4';
const FIND_KEY = 'SELECT key, uid FROM natural_key WHERE kind = $1 AND key = $2';
const DROP_KEY = 'DELETE FROM natural_key WHERE kind = $1 AND key = $2 AND uid = $3';
const DROP_REFERENCE = 'DELETE FROM reference WHERE kind = $1 AND field = $2 AND value = $3 AND uid = $4';
const FIND_LIST = 'SELECT id, scope, kind, facet, n FROM list WHERE id = $1';
const COUNT_ENTRIES = 'SELECT count(*) AS n FROM entry WHERE list = $1 AND sort = $2';
const COUNT_DESCENDANTS = 'SELECT count(*) AS n FROM resource WHERE kind = $1 AND uid > $2 AND uid < $3';
const COUNT_DESCENDANTS_AND_SELF = 'SELECT count(*) AS n FROM resource WHERE kind = $1 AND uid >= $2 AND uid < $3';
const COUNT_CHILDREN = 'SELECT count(*) AS n FROM resource WHERE kind = $1 AND parent = $2';
const SET_SIZE = 'UPDATE list SET n = $2 WHERE id = $1';

/** Resources per transaction, so that other writers wait only briefly. */
const BATCH = 50;

/**
 * Mends differences that were found in a snapshot. Each method locks what it changes and looks again, because a difference
 * may have disappeared since.
 */
export interface Repair {
  /** Adds everything that resources lack. */
  resources(resource: Resource, uids: readonly string[]): Promise<void>;
  extraEntries(resource: Resource, list: ListRow, entries: readonly EntryRow[]): Promise<void>;
  listSize(resource: Resource, id: number): Promise<void>;
  extraKeys(resource: Resource, keys: readonly KeyRow[]): Promise<void>;
  extraReferences(resource: Resource, references: readonly ReferenceRow[]): Promise<void>;
  /** Corrects the sizes of the lists whose entries were changed. Call it at the end. */
  finish(): Promise<void>;
}

/**
 * Leaves out the parts of the listing index that `indexes` lack, because they are being built. Without `indexes` it adds
 * resources to these parts too, and marks them as members of the index in `building`, so that the builder does not add
 * them again.
 */
export function createRepair(store: Store, indexes: ListingIndexes | undefined, building?: ListingIndexes): Repair {
  const changedLists = new Map<number, Resource>();

  async function inBatches<T>(
    items: readonly T[],
    work: (tx: Transaction, some: readonly T[]) => Promise<void>,
  ): Promise<void> {
    for (let at = 0; at < items.length; at += BATCH) {
      await store.write((tx) => work(tx, items.slice(at, at + BATCH)));
    }
  }
  const listSize = (resource: Resource, id: number) => store.write((tx) => recount(tx, resource, id));

  return {
    resources: (resource, uids) =>
      inBatches(uids.toSorted(), async (tx, some) => {
        for (const id of await mendResources(tx, indexes, building, resource, some)) changedLists.set(id, resource);
      }),
    extraEntries: (resource, list, entries) =>
      inBatches(entries, async (tx, some) => {
        const uids = [...new Set(some.map(({ uid }) => uid))].sort();
        const memberships = expectedMemberships(indexes, resource);
        const found = await findAll(tx.forUpdate, resource, uids);
        const stored = new Map<string, Stored>(found.map((each) => [each.uid, each]));
        for (const { sort, key, uid } of some) {
          if (expectedKey(memberships, stored.get(uid), list, sort) === key) continue;
          await tx.run(DROP_ENTRY, list.id, sort, key, uid);
        }
        changedLists.set(list.id, resource);
      }),
    listSize,
    extraKeys: (resource, keys) =>
      inBatches(keys, async (tx, some) => {
        for (const { key, uid } of await findExtraKeys(tx.forUpdate, resource, some)) {
          await tx.run(DROP_KEY, resource.kind, key, uid);
        }
      }),
    extraReferences: (resource, references) =>
      inBatches(references, async (tx, some) => {
        for (const { field, value, uid } of await findExtraReferences(tx.forUpdate, resource, some)) {
          await tx.run(DROP_REFERENCE, resource.kind, field, value, uid);
        }
      }),
    async finish() {
      for (const [id, resource] of changedLists) await listSize(resource, id);
      changedLists.clear();
    },
  };
}

/** Returns the ids of the lists that the resources belong to. */
async function mendResources(
  tx: Transaction,
  indexes: ListingIndexes | undefined,
  building: ListingIndexes | undefined,
  resource: Resource,
  uids: readonly string[],
): Promise<number[]> {
  const { kind } = resource;
  const generation = building?.get(kind)?.generation ?? null;
  await lockParents(tx, resource, await findAll(tx, resource, uids));
  const stored: readonly Stored[] = await findAll(tx.forUpdate, resource, uids);
  for (const each of stored) await tx.run(SET_KEYS, kind, each.uid, sortKeysJson(resource, each), generation);
  const claims = stored.flatMap((each) => expectedKeys(resource, each));
  for (const { key, uid } of claims) {
    const holder = await tx.get<KeyRow>(FIND_KEY, kind, key);
    if (!holder || holder.uid === uid || (await findExtraKeys(tx, resource, [holder])).length === 0) continue;
    await tx.run(DROP_KEY, kind, key, holder.uid);
  }
  const keys = claims.map(({ key, uid }) => [kind, key, uid]);
  await tx.insert(KEYS, keys.flat());
  const references = stored.flatMap((each) => expectedReferences(resource, each));
  await tx.insert(
    REFERENCES,
    references.flatMap((reference) => [kind, ...reference]),
  );
  const memberships = stored.flatMap(expectedMemberships(indexes, resource));
  return addEntries(
    tx,
    kind,
    memberships.map((membership) => ({ membership, isCounted: false })),
  );
}

/** Sets the size of a list to the number of its members. */
async function recount(tx: Transaction, resource: Resource, id: number): Promise<void> {
  // Locked: every write that adds or removes a member locks the list too.
  const list = await tx.forUpdate.get<ListRow>(FIND_LIST, id);
  if (!list) return;
  const n = await countMembers(tx, resource, list);
  if (n !== list.n) await tx.run(SET_SIZE, id, n);
}

async function countMembers(tx: Transaction, resource: Resource, { id, scope, facet }: ListRow): Promise<number> {
  const count = async (statement: string, ...params: (string | number)[]): Promise<number> =>
    Number((await tx.get<{ n: number } & Row>(statement, ...params))?.n ?? 0);
  if (facet !== WHOLE_LIST) {
    const [order] = expectedOrders(resource, facetOfList(facet));
    return order === undefined ? 0 : count(COUNT_ENTRIES, id, order);
  }
  const uid = scope.slice('d:'.length);
  if (scope.startsWith('c:')) return count(COUNT_CHILDREN, resource.kind, uid);
  const statement = resource.isScope ? COUNT_DESCENDANTS_AND_SELF : COUNT_DESCENDANTS;
  return count(statement, resource.kind, ...descendantRange(uid));
}
