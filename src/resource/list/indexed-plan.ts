import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { type AccessPath, countPath, pagePath, scansOf } from './access-path.ts';
import type { ListConditions } from './conditions.ts';
import { countFromIndex } from './index-counts.ts';
import { findIndexLists } from './index-lists.ts';
import { countStatement, pageStatement, queryValues, type ScanQuery } from './list-sql.ts';
import { type Order, storedOrder, UNORDERED } from './order.ts';
import { type CountedTotal, type Cursor, fingerprint } from './page-token.ts';
import { comparePageRows, type ListPlan, type PageRow } from './plan.ts';
import { pruneScans } from './prune-scans.ts';
import { divideIntoStatements, startAtCursor } from './scan.ts';
import { canLoop } from './scan-sql.ts';
import { facetKeysOf, splitConditions } from './split-conditions.ts';
import type { Collection, CollectionRange } from './visible-range.ts';

/** The most rows per scan with which sorting the union of several scans is cheaper than merging them. */
const MAX_SORTED = 500;

/** Reads a list by the listing index: one seek per collection, whatever its size. */
export async function indexedPlan(
  db: Reader,
  resource: Resource,
  { collections, excludedUid }: CollectionRange,
  conditions: ListConditions,
  requestedOrder: Order,
  /** The total that a page token has, from an earlier page of the same list. */
  earlierTotal?: CountedTotal,
): Promise<ListPlan> {
  const query = splitConditions(resource, conditions);
  const order = storedOrder(resource, requestedOrder);
  const { equalKeys, since, before, facetFilters, referenceFilters, unfilteredFacets } = query;
  const facets = [...unfilteredFacets, ...facetFilters.flatMap(facetKeysOf)];
  const lists = await findIndexLists(db, resource, collections, facets);
  const counts = countFromIndex(query, { collections, excludedUid }, lists);
  const statistics = { resource, query, lists, counts };

  /** Returns the queries that together read the list by an access path, `rows` rows at most from each scan. */
  function queriesFor(path: AccessPath, by: Order, cursor: Cursor | undefined, rows: number): ScanQuery[] {
    const coveredFilter = 'filter' in path ? path.filter : undefined;
    const sort = 'sort' in path ? path.sort : 'uid';
    const scansOverlap = coveredFilter !== undefined && coveredFilter.values.length > 1;
    const scansIn = (collection: Collection) =>
      scansOf(path, statistics, collection).map((scan) => startAtCursor(scan, by, cursor));
    const scansByCollection = collections.map(scansIn);
    const loopFunction = scansOverlap || !canLoop(scansByCollection.flat(), sort, by) ? undefined : db.jsonElements;
    const statements =
      loopFunction === undefined ? divideIntoStatements(scansByCollection) : [scansByCollection.flat()];
    const common = {
      excludedUid,
      sort,
      order: by,
      afterCursor: cursor !== undefined,
      equalKeys,
      since,
      before,
      referenceFilters: referenceFilters.filter((filter) => filter !== coveredFilter),
      loopFunction,
      scansOverlap,
      withBodies: db.rowCache === undefined,
      binaryCollation: db.binaryCollation,
    };
    return statements.map((scans) => ({ scans, sortsUnion: scans.length > 4 && rows <= MAX_SORTED, ...common }));
  }

  async function countRows(): Promise<number> {
    let total = 0;
    for (const each of queriesFor(countPath(statistics), UNORDERED, undefined, Infinity)) {
      const { text, bind } = countStatement(each);
      const row = await db.get<{ n: number }>(text, ...bind({ kind: resource.kind, ...queryValues(each) }));
      total += row?.n ?? 0;
    }
    return total;
  }
  const findTotal = async (): Promise<CountedTotal> => {
    const counted = fingerprint([...collections.map(({ of, uid }) => `${of} ${uid}`), excludedUid].join());
    return earlierTotal?.collections === counted ? earlierTotal : { collections: counted, total: await countRows() };
  };
  let found: Promise<CountedTotal> | undefined;
  const countedTotal = (): Promise<CountedTotal> => {
    found ??= findTotal();
    return found;
  };
  const total = (): MaybePromise<number> => counts.total ?? countedTotal().then((counted) => counted.total);

  return {
    total,
    countedTotal: () => (counts.total === undefined ? countedTotal() : undefined),

    async page({ cursor, limit, skip }) {
      const matching = await total();
      if (matching === 0) return [];
      // Skipped rows are read one by one, so a page in the second half is read backwards from the end.
      const remaining = matching - skip;
      if (cursor === undefined && remaining < skip) {
        const rows = Math.min(limit, remaining);
        if (rows <= 0) return [];
        return (await read(reversed(order), undefined, rows, remaining - rows, matching)).reverse();
      }
      return read(order, cursor, limit, skip, matching);
    },
  };

  async function read(
    by: Order,
    cursor: Cursor | undefined,
    limit: number,
    skip: number,
    matching: number,
  ): Promise<PageRow[]> {
    const rows = limit + skip;
    const path = pagePath(statistics, order.terms[0]?.field ?? 'uid', matching, rows);
    const keys = cursor?.keys.map((key, i) => [`cursor${i}`, key] as const) ?? [];
    const common = { kind: resource.kind, ...Object.fromEntries(keys), cursor_uid: cursor?.uid ?? null };
    const queries = await pruneScans(db, queriesFor(path, by, cursor, rows), common, rows);

    // The results of several statements are merged afterwards, so each must include the rows that the merge skips.
    const isOne = queries.length <= 1;
    const window = isOne ? { limit, skip, scan_limit: rows } : { limit: rows, skip: 0, scan_limit: rows };
    const page: PageRow[] = [];
    for (const each of queries) {
      const { text, bind } = pageStatement(each);
      const values = { ...common, union_limit: rows * each.scans.length, ...window, ...queryValues(each) };
      page.push(...(await db.all<PageRow>(text, ...bind(values))));
    }
    return isOne ? page : page.sort(comparePageRows(by)).slice(skip, skip + limit);
  }
}

const reversed = ({ terms, uidDescending }: Order): Order => ({
  terms: terms.map(({ field, descending }) => ({ field, descending: !descending })),
  uidDescending: !uidDescending,
});
