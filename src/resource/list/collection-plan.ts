import { ApiError, Code } from '../../base/errors.ts';
import { mapInSlices, startSlices } from '../../base/slices.ts';
import { descendantRange, ROOT } from '../../base/uid.ts';
import type { Reader } from '../../store/store.ts';
import { PARTITION, type Resource } from '../definition.ts';
import { findProgress, percentageOf } from '../index/build-progress.ts';
import { entriesPart, keyPart, missingParts, type PartSet } from '../index/index-parts.ts';
import { WHOLE_LIST } from '../list-membership.ts';
import { COLUMNS, type ResourceRow, type StoredWithBody, toStored } from '../read.ts';
import type { ListConditions } from './conditions.ts';
import { findIndexLists } from './index-lists.ts';
import { indexedPlan } from './indexed-plan.ts';
import { type Order, storedOrder } from './order.ts';
import type { CountedTotal } from './page-token.ts';
import type { ListPlan } from './plan.ts';
import { splitConditions } from './split-conditions.ts';
import { listInMemory } from './uid-list-plan.ts';
import type { Collection, CollectionRange } from './visible-range.ts';

/** The largest list that is read row by row. It takes about 100 ms, divided into slices. */
const MAX_UNINDEXED = 10_000;
const PAGE = 500;
const RETRY_MS = 5_000;

const DESCENDANTS = `SELECT ${COLUMNS.join(', ')} FROM resource
  WHERE kind = $1 AND uid >= $2 AND uid < $3 AND uid > $4 ORDER BY uid LIMIT ${PAGE}`;
const CHILDREN = `SELECT ${COLUMNS.join(', ')} FROM resource
  WHERE kind = $1 AND parent = $2 AND uid > $3 ORDER BY uid LIMIT ${PAGE}`;

/**
 * Reads collections by the listing index. If the list needs a part of the index that is being built, it is read row by row
 * instead, and a large one is refused as unavailable.
 */
export async function collectionPlan(
  db: Reader,
  resource: Resource,
  range: CollectionRange,
  conditions: ListConditions,
  order: Order,
  earlierTotal?: CountedTotal,
): Promise<ListPlan> {
  const missing = missingParts(resource, db.listingIndexes?.get(resource.kind));
  return missing && needsAnyOf(missing, resource, conditions, order)
    ? unindexedPlan(db, resource, range, conditions, order)
    : indexedPlan(db, resource, range, conditions, order, earlierTotal);
}

/** Whether a list needs one of `parts`, whichever access path is chosen for it (access-path.ts). */
function needsAnyOf(parts: PartSet, resource: Resource, conditions: ListConditions, order: Order): boolean {
  const { equalKeys, since, before, facetFilters } = splitConditions(resource, conditions);
  const { terms } = storedOrder(resource, order);
  const { listOrders, hidden, storedName } = resource;
  const keys = [...terms, ...equalKeys, ...[since, before].filter((bound) => bound !== undefined)].map(
    ({ field }) => field,
  );
  const [lookup = 'uid'] = listOrders.facet;
  const facets = [
    ...facetFilters.map(({ field }) => ({ field, orders: [lookup, ...keys] })),
    ...(hidden ? [{ field: storedName(PARTITION), orders: ['uid', ...keys] }] : []),
  ];
  return (
    keys.some((key) => parts.parts.has(keyPart(key)) || parts.parts.has(entriesPart('', key))) ||
    facets.some(({ field, orders }) => {
      return parts.hasFacet(field) || orders.some((each) => parts.hasEntries(field, each));
    })
  );
}

async function unindexedPlan(
  db: Reader,
  resource: Resource,
  { collections, excludedUid }: CollectionRange,
  conditions: ListConditions,
  order: Order,
): Promise<ListPlan> {
  const lists = await findIndexLists(db, resource, collections, []);
  const size = collections.reduce((sum, collection) => sum + (lists.listOf(collection, WHOLE_LIST)?.n ?? 0), 0);
  if (size > MAX_UNINDEXED) throw indexIncomplete(resource, percentageOf(await findProgress(db, resource.kind)));
  const found = new Map<string, StoredWithBody>();
  for (const collection of collections) {
    for (const each of await readCollection(db, resource, collection)) found.set(each.uid, each);
  }
  if (excludedUid !== undefined) found.delete(excludedUid);
  return listInMemory(resource, [...found.values()], conditions, order);
}

async function readCollection(db: Reader, resource: Resource, { of, uid }: Collection): Promise<StoredWithBody[]> {
  const [low, high] = uid === ROOT ? ['', 'g'] : descendantRange(uid);
  const found: StoredWithBody[] = [];
  const slices = startSlices();
  for (let after = ''; ; ) {
    const rows =
      of === 'children'
        ? await db.all<ResourceRow>(CHILDREN, resource.kind, uid, after)
        : await db.all<ResourceRow>(DESCENDANTS, resource.kind, low, high, after);
    found.push(...(await mapInSlices(rows, (row) => ({ ...toStored(resource, row), body: row.body }), slices)));
    const last = rows.at(-1);
    if (!last || rows.length < PAGE) return found;
    after = last.uid;
  }
}

/** UNAVAILABLE: a list needs a part of the listing index that is being built, of which `percentage` is done. */
export function indexIncomplete({ plural }: Resource, percentage: number | undefined): ApiError {
  const progress = percentage === undefined ? '' : ` (${percentage} %)`;
  return new ApiError(
    Code.UNAVAILABLE,
    `Unavailable: this order or filter of ${plural} is new and its index is being built${progress}; retry later, or list without it`,
    [{ type: 'RetryInfo', delayMs: RETRY_MS }],
  );
}
