import { descendantRange, ROOT } from '../../base/uid.ts';
import type { Resource } from '../definition.ts';
import { WHOLE_LIST } from '../list-membership.ts';
import type { Filter } from './conditions.ts';
import type { IndexCounts } from './index-counts.ts';
import type { IndexList, IndexLists } from './index-lists.ts';
import type { ListCheck, Scan } from './scan.ts';
import { facetKeysOf, type SplitConditions } from './split-conditions.ts';
import type { Collection } from './visible-range.ts';

/** The index by which rows are found. All conditions that the index does not cover are checked for each row. */
export type AccessPath =
  /** The primary key, in uid order. */
  | { readonly by: 'primary key' }
  /** The unfiltered lists of the collections, in one of their orders. */
  | { readonly by: 'unfiltered list'; readonly sort: string }
  /** The lists of a facet, in one of their orders. */
  | { readonly by: 'facet list'; readonly sort: string; readonly filter: Filter }
  /** The values of a reference, in uid order. */
  | { readonly by: 'reference'; readonly filter: Filter };

/** What is known about a list before any of its rows is read. */
export interface ListStatistics {
  readonly resource: Resource;
  readonly query: SplitConditions;
  readonly lists: IndexLists;
  readonly counts: IndexCounts;
}

/** Chooses how to count the matching rows: in any order, with as few rows to read as possible. */
export function countPath({ resource, query, counts }: ListStatistics): AccessPath {
  const bound = query.since ?? query.before;
  const exact = exactMatchPath(query);
  if (exact) return exact;
  if (counts.mostSelective) {
    return { by: 'facet list', sort: lookupOrder(resource), filter: counts.mostSelective.filter };
  }
  return bound ? { by: 'unfiltered list', sort: bound.field } : uidOrderPath(query);
}

/** Chooses how to read a page of `pageRows` rows, sorted by `sort` first, of a list with `matching` rows. */
export function pagePath(
  { resource, query, counts }: ListStatistics,
  sort: string,
  matching: number,
  pageRows: number,
): AccessPath {
  const bound = query.since ?? query.before;
  const { unfiltered, mostSelective } = counts;
  // Whether it is cheaper to read and sort this many rows than to read all rows in order until the page is full. If the
  // matching rows are spread evenly, one of `unfiltered / matching` rows matches.
  const isCheaperToSort = (rows: number): boolean => rows * matching < unfiltered * pageRows;
  const exact = exactMatchPath(query);
  if (exact) return exact;
  const isIndexed = sort === 'uid' || resource.listOrders.whole.includes(sort);
  if (mostSelective) {
    const { filter, rows } = mostSelective;
    if (resource.listOrders.facet.includes(sort)) return { by: 'facet list', sort, filter };
    if (isCheaperToSort(rows) || !isIndexed) return { by: 'facet list', sort: lookupOrder(resource), filter };
  } else if (bound && isCheaperToSort(matching)) {
    return { by: 'unfiltered list', sort: bound.field };
  }
  return sort === 'uid' || !isIndexed ? uidOrderPath(query) : { by: 'unfiltered list', sort };
}

/** Few rows have the same sort key or the same value of a reference, so no other path can be better. */
function exactMatchPath({ equalKeys, referenceFilters }: SplitConditions): AccessPath | undefined {
  const [equalKey] = equalKeys;
  if (equalKey) return { by: 'unfiltered list', sort: equalKey.field };
  const filter = referenceFilters.find(({ excludes }) => !excludes);
  return filter && { by: 'reference', filter };
}

const uidOrderPath = ({ partitionFilter }: SplitConditions): AccessPath =>
  partitionFilter ? { by: 'unfiltered list', sort: 'uid' } : { by: 'primary key' };

/** The order of facet lists in which a single row is looked up. */
const lookupOrder = ({ listOrders }: Resource): string => listOrders.facet[0] ?? 'uid';

/** Returns the scans that read a collection by an access path; none if no row of it can match. */
export function scansOf(path: AccessPath, statistics: ListStatistics, collection: Collection): Scan[] {
  const { query, lists } = statistics;
  const { of, uid } = collection;
  if (!lists.listOf(collection, WHOLE_LIST)?.n) return [];
  const checks = checksOf(path, statistics, collection);
  if (checks.some((check) => !check.excludes && check.lists.every((list) => list === null))) return [];

  // Uids begin with hexadecimal digits.
  const [low, high] = uid === ROOT ? ['', 'g'] : descendantRange(uid);
  // The indexes of facets and references have all descendants, of which the children may be a part.
  const parent = of === 'children' && !lists.hasAllDescendants(collection) ? uid : undefined;
  switch (path.by) {
    case 'primary key':
      return [of === 'children' ? { from: 'parent', parent: uid, checks } : { from: 'range', low, high, checks }];
    case 'unfiltered list': {
      const ids = idsOf(query.unfilteredFacets.map((facet) => lists.listOf(collection, facet)));
      return ids.map((list) => ({ from: 'list', list, parent: undefined, checks }));
    }
    case 'facet list': {
      const ids = idsOf(facetKeysOf(path.filter).map((facet) => lists.facetListOf(uid, facet)));
      return ids.map((list) => ({ from: 'list', list, parent, checks }));
    }
    case 'reference': {
      const { field, values } = path.filter;
      return values.map((value) => ({ from: 'reference', field, value, low, high, parent, checks }));
    }
  }
}

/** Returns the checks for the facets and partitions that the access path does not cover. */
function checksOf(path: AccessPath, { resource, query, lists }: ListStatistics, collection: Collection): ListCheck[] {
  const { facetFilters, partitionFilter, unfilteredFacets } = query;
  // A check has all values of a filter, even those without a list, so that all collections have the same statement.
  const checks = facetFilters
    .filter((filter) => !('filter' in path) || filter !== path.filter)
    .map((filter) => ({
      lists: facetKeysOf(filter).map((facet) => idOf(lists.facetListOf(collection.uid, facet))),
      sort: lookupOrder(resource),
      excludes: filter.excludes ?? false,
    }));
  if (partitionFilter && path.by !== 'unfiltered list') {
    const partitions = unfilteredFacets.map((facet) => idOf(lists.listOf(collection, facet)));
    checks.push({ lists: partitions, sort: resource.listOrders.partition[0] ?? 'uid', excludes: false });
  }
  return checks;
}

const idOf = (list: IndexList | undefined): number | null => (list && list.n > 0 ? list.id : null);

const idsOf = (lists: readonly (IndexList | undefined)[]): number[] => lists.map(idOf).filter((id) => id !== null);
