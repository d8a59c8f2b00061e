import type { Filter } from './conditions.ts';
import type { IndexLists } from './index-lists.ts';
import { facetKeysOf, type SplitConditions } from './split-conditions.ts';
import type { CollectionRange } from './visible-range.ts';

/** Row counts that the sizes of lists give without reading rows. */
export interface IndexCounts {
  /** The number of rows before all filters. */
  readonly unfiltered: number;
  /** The number of rows after all filters; undefined if rows must be read to count them. */
  readonly total: number | undefined;
  /** The facet filter that leaves the fewest rows, and an upper bound of their number. */
  readonly mostSelective: { readonly filter: Filter; readonly rows: number } | undefined;
}

export function countFromIndex(
  query: SplitConditions,
  { collections, excludedUid }: CollectionRange,
  lists: IndexLists,
): IndexCounts {
  const { facetFilters, unfilteredFacets } = query;
  const sizes = collections.flatMap((collection) =>
    unfilteredFacets.map((facet) => lists.listOf(collection, facet)?.n ?? 0),
  );
  const listed = sum(sizes);
  const unfiltered = excludedUid !== undefined && listed > 0 ? listed - 1 : listed;
  const rowsOf = (filter: Filter): number =>
    sum(collections.flatMap(({ uid }) => facetKeysOf(filter).map((facet) => lists.facetListOf(uid, facet)?.n ?? 0)));
  const [mostSelective] = facetFilters
    .filter(({ excludes }) => !excludes)
    .map((filter) => ({ filter, rows: rowsOf(filter) }))
    .sort((a, b) => a.rows - b.rows);

  function total(): number | undefined {
    const { equalKeys, since, before, referenceFilters, partitionFilter } = query;
    const [filter, another] = facetFilters;
    if (equalKeys.length > 0 || since || before || referenceFilters.length > 0 || another) return undefined;
    // The partition and the facet values of the excluded uid are not known here.
    if (!filter) return partitionFilter && excludedUid !== undefined ? undefined : unfiltered;
    if (filter.values.length > 1 || partitionFilter || excludedUid !== undefined) return undefined;
    if (!collections.every(lists.hasAllDescendants)) return undefined;
    return filter.excludes ? unfiltered - rowsOf(filter) : rowsOf(filter);
  }

  return { unfiltered, total: total(), mostSelective };
}

const sum = (counts: readonly number[]): number => counts.reduce((total, n) => total + n, 0);
