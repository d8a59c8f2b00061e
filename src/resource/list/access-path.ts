import { ROOT, rangeBelow } from '../../base/uid.ts';
import type { Resource } from '../definition.ts';
import type { IndexCounts } from './counts.ts';
import type { List, Lists } from './index-lists.ts';
import { facetsOf, type IndexQuery } from './index-query.ts';
import type { Filter } from './plan.ts';
import type { Check, Source } from './source.ts';
import type { Collection } from './visible-range.ts';

/** How rows are found. What they are not found by, they are checked for. */
export type AccessPath =
  /** In uid order, one by one. */
  | { readonly by: 'primary key' }
  /** By the lists that hold everything, in one of their orders. */
  | { readonly by: 'whole'; readonly sort: string }
  /** By the lists of a facet, in one of their orders. */
  | { readonly by: 'facet'; readonly sort: string; readonly filter: Filter }
  /** By a reference, in uid order. */
  | { readonly by: 'reference'; readonly filter: Filter };

/** What is known before any row is read. */
export interface ListStatistics {
  readonly resource: Resource;
  readonly reading: IndexQuery;
  readonly lists: Lists;
  readonly census: IndexCounts;
}

/** How to count what is selected: order does not matter, only how many rows must be looked at. */
export function countPath({ resource, reading, census }: ListStatistics): AccessPath {
  const { since } = reading;
  const exact = exactPath(reading);
  if (exact) return exact;
  if (census.narrowest) return { by: 'facet', sort: probingSort(resource), filter: census.narrowest.filter };
  return since ? { by: 'whole', sort: since.field } : uidOrderPath(reading);
}

/** How to read a page of `wanted` rows of the `matching` ones, ordered by `sort` first. */
export function pagePath(
  { resource, reading, census }: ListStatistics,
  sort: string,
  matching: number,
  wanted: number,
): AccessPath {
  const { since } = reading;
  const { members, narrowest } = census;
  // Whether it is cheaper to read and sort so many rows than to look through all in their order for the matching ones.
  // If these are spread evenly, there is one in every `members / matching`.
  const isSparse = (rows: number): boolean => rows * matching < members * wanted;
  const exact = exactPath(reading);
  if (exact) return exact;
  const isKept = sort === 'uid' || resource.listOrders.whole.includes(sort);
  if (narrowest) {
    const { filter, rows } = narrowest;
    if (resource.listOrders.facet.includes(sort)) return { by: 'facet', sort, filter };
    if (isSparse(rows) || !isKept) return { by: 'facet', sort: probingSort(resource), filter };
  } else if (since && isSparse(matching)) {
    return { by: 'whole', sort: since.field };
  }
  return sort === 'uid' || !isKept ? uidOrderPath(reading) : { by: 'whole', sort };
}

/** Few rows share a value of a sort key or of a reference, so that there is no better way. */
function exactPath({ equals, references }: IndexQuery): AccessPath | undefined {
  const [key] = equals;
  if (key) return { by: 'whole', sort: key.field };
  const filter = references.find(({ excludes: lacks }) => !lacks);
  return filter && { by: 'reference', filter };
}

const uidOrderPath = ({ parts }: IndexQuery): AccessPath =>
  parts ? { by: 'whole', sort: 'uid' } : { by: 'primary key' };

const probingSort = ({ listOrders }: Resource): string => listOrders.facet[0] ?? 'uid';

/** The runs of rows to read for a collection; none if it cannot have any. */
export function sourcesOf(way: AccessPath, survey: ListStatistics, collection: Collection): Source[] {
  const { reading, lists } = survey;
  const { of, uid } = collection;
  if (!lists.of(collection, '')?.n) return [];
  const checks = checksOf(way, survey, collection);
  if (checks.some(({ lists, lacks }) => !lacks && lists.every((list) => list === null))) return [];

  // Uids begin with hexadecimal digits.
  const [low, high] = uid === ROOT ? ['', 'g'] : rangeBelow(uid);
  // Facets and references know what lies below, of which children may be a part.
  const parent = of === 'children' && !lists.isAllBelow(collection) ? uid : undefined;
  switch (way.by) {
    case 'primary key':
      return [of === 'children' ? { from: 'parent', parent: uid, checks } : { from: 'range', low, high, checks }];
    case 'whole': {
      const found = idsOf(reading.whole.map((facet) => lists.of(collection, facet)));
      return found.map((list) => ({ from: 'list', list, parent: undefined, checks }));
    }
    case 'facet': {
      const found = idsOf(facetsOf(way.filter).map((facet) => lists.below(uid, facet)));
      return found.map((list) => ({ from: 'list', list, parent, checks }));
    }
    case 'reference': {
      const { field, values } = way.filter;
      return values.map((value) => ({ from: 'reference', field, value, low, high, parent, checks }));
    }
  }
}

function checksOf(way: AccessPath, { resource, reading, lists }: ListStatistics, collection: Collection): Check[] {
  const { facets, parts, whole } = reading;
  // All values, whether the collection has them or not: so the statement is the same for every collection.
  const checks = facets
    .filter((filter) => !('filter' in way) || filter !== way.filter)
    .map((filter) => ({
      lists: facetsOf(filter).map((facet) => idOf(lists.below(collection.uid, facet))),
      sort: probingSort(resource),
      lacks: filter.excludes ?? false,
    }));
  if (parts && way.by !== 'whole') {
    const shown = whole.map((facet) => idOf(lists.of(collection, facet)));
    checks.push({ lists: shown, sort: resource.listOrders.partition[0] ?? 'uid', lacks: false });
  }
  return checks;
}

const idOf = (list: List | undefined): number | null => (list && list.n > 0 ? list.id : null);

const idsOf = (lists: readonly (List | undefined)[]): number[] => lists.map(idOf).filter((id) => id !== null);
