import { PARTITION, type Resource, VISIBLE } from '../definition.ts';
import { facetKey } from '../list-membership.ts';
import type { Filter, Selection } from './plan.ts';

/** What a selection asks of the listing index. */
export interface IndexQuery {
  /** Rows have these values under these sort keys. */
  readonly equals: readonly { readonly field: string; readonly key: string }[];
  /** Rows have at least this value under this sort key. */
  readonly since: { readonly field: string; readonly key: string } | undefined;
  /** Rows stand in the lists of facets, or not. */
  readonly facets: readonly Filter[];
  /** Rows have values of references, or not. */
  readonly references: readonly Filter[];
  /** The parts of lists that are shown, unless all are. */
  readonly parts: Filter | undefined;
  /** The facets whose lists together hold all that is shown, each row once. */
  readonly whole: readonly string[];
}

export function indexQuery(resource: Resource, { filters, parts, since }: Selection): IndexQuery {
  const { sortKeys, facets = {}, hidden } = resource;
  const keyed = filters.filter(({ field }) => field in sortKeys);
  const faceted = filters.filter((filter) => !keyed.includes(filter) && filter.field in facets);
  const shown = parts ?? (hidden && [VISIBLE, ...Object.keys(hidden)]);
  return {
    equals: keyed.map(equalOf),
    since,
    facets: faceted,
    references: filters.filter((filter) => !keyed.includes(filter) && !faceted.includes(filter)),
    parts: parts && { field: PARTITION, values: parts },
    whole: shown?.map((part) => facetKey(PARTITION, part)) ?? [''],
  };
}

/** A selector lets nothing else through (request-filters.ts); whoever makes filters by hand shall notice too. */
function equalOf({ field, values, excludes: lacks }: Filter): { readonly field: string; readonly key: string } {
  const [key, another] = values;
  const isOne = key !== undefined && another === undefined && !lacks;
  if (!isOne) throw new Error(`${field} can be filtered by one value only`);
  return { field, key };
}

export const facetsOf = ({ field, values }: Filter): string[] => values.map((value) => facetKey(field, value));
