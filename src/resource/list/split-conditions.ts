import { PARTITION, type Resource, VISIBLE } from '../definition.ts';
import { facetKey, WHOLE_LIST } from '../list-membership.ts';
import type { Filter, KeyCondition, ListConditions } from './conditions.ts';

/** The conditions of a list, divided by how the listing index serves them, with the stored names of their fields. */
export interface SplitConditions {
  /** Sort keys that rows must have. */
  readonly equalKeys: readonly KeyCondition[];
  /** The lower bound of a sort key. */
  readonly since: KeyCondition | undefined;
  /** The upper bound of a sort key, which is not included. */
  readonly before: KeyCondition | undefined;
  readonly facetFilters: readonly Filter[];
  readonly referenceFilters: readonly Filter[];
  /** The partitions that the list includes; undefined for all. */
  readonly partitionFilter: Filter | undefined;
  /** The lists that together have all rows of the wanted partitions, each row once: WHOLE_LIST, or one per partition. */
  readonly unfilteredFacets: readonly string[];
}

export function splitConditions(resource: Resource, conditions: ListConditions): SplitConditions {
  const { filters, partitions, since, before } = conditions;
  const { sortKeys, facets = {}, hidden, indexVersions, storedName } = resource;
  const stored = <C extends Filter | KeyCondition>(condition: C): C =>
    indexVersions ? { ...condition, field: storedName(condition.field) } : condition;
  const keyFilters = filters.filter(({ field }) => field in sortKeys);
  const facetFilters = filters.filter((filter) => !keyFilters.includes(filter) && filter.field in facets);
  const included = partitions ?? (hidden && [VISIBLE, ...Object.keys(hidden)]);
  return {
    equalKeys: keyFilters.map(equalKeyOf).map(stored),
    since: since && stored(since),
    before: before && stored(before),
    facetFilters: facetFilters.map(stored),
    referenceFilters: filters.filter((filter) => !keyFilters.includes(filter) && !facetFilters.includes(filter)),
    partitionFilter: partitions && { field: storedName(PARTITION), values: partitions },
    unfilteredFacets: included?.map((partition) => facetKey(storedName(PARTITION), partition)) ?? [WHOLE_LIST],
  };
}

/** Filters of requests always have one value here (request-filters.ts). Checked for filters that come from code. */
function equalKeyOf({ field, values, excludes }: Filter): KeyCondition {
  const [key, another] = values;
  const isOne = key !== undefined && another === undefined && !excludes;
  if (!isOne) throw new Error(`${field} can be filtered by one value only`);
  return { field, key };
}

export const facetKeysOf = ({ field, values }: Filter): string[] => values.map((value) => facetKey(field, value));
