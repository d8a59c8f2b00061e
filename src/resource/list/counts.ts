import type { Lists } from './index-lists.ts';
import { facetsOf, type IndexQuery } from './index-query.ts';
import type { Filter } from './plan.ts';
import type { CollectionRange } from './visible-range.ts';

/** What the counters of lists tell without a look at any row. */
export interface IndexCounts {
  /** Rows before any filter. */
  readonly members: number;
  /** Rows after all filters, if the counters know. */
  readonly total: number | undefined;
  /** The facet that leaves the fewest rows, and how many at most. */
  readonly narrowest: { readonly filter: Filter; readonly rows: number } | undefined;
}

export function countFromIndex(
  reading: IndexQuery,
  { collections, except }: CollectionRange,
  lists: Lists,
): IndexCounts {
  const { facets, whole } = reading;
  const listed = sum(collections.flatMap((one) => whole.map((facet) => lists.of(one, facet)?.n ?? 0)));
  const members = except !== undefined && listed > 0 ? listed - 1 : listed;
  const rowsOf = (filter: Filter): number =>
    sum(collections.flatMap(({ uid }) => facetsOf(filter).map((facet) => lists.below(uid, facet)?.n ?? 0)));
  const [narrowest] = facets
    .filter(({ excludes: lacks }) => !lacks)
    .map((filter) => ({ filter, rows: rowsOf(filter) }))
    .sort((a, b) => a.rows - b.rows);

  function total(): number | undefined {
    const { equals, since, references, parts } = reading;
    const [filter, another] = facets;
    if (equals.length > 0 || since || references.length > 0 || another) return undefined;
    // Of the one that is left out nobody knows here which part it is of and which values it has.
    if (!filter) return parts && except !== undefined ? undefined : members;
    if (filter.values.length > 1 || parts || except !== undefined) return undefined;
    if (!collections.every(lists.isAllBelow)) return undefined;
    return filter.excludes ? members - rowsOf(filter) : rowsOf(filter);
  }

  return { members, total: total(), narrowest };
}

const sum = (counts: readonly number[]): number => counts.reduce((total, n) => total + n, 0);
