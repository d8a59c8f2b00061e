import type { Resource } from '../definition.ts';
import { facetKey, partKey, SHOWN } from '../membership.ts';
import type { Filter, Selection } from './plan.ts';

/** How the listing index answers a selection. */
export interface Reading {
  /** Rows have these values under these sort keys; the first one drives. */
  readonly equals: readonly { readonly field: string; readonly key: string }[];
  /** Rows are found by the first of these references, instead of by lists, and have a value of each other. */
  readonly references: readonly Filter[];
  /** The facets whose lists are read and merged. */
  readonly driving: readonly string[];
  /** Whether a row may stand in several of those. */
  readonly overlapping: boolean;
  /** Rows stand in one list of each of these groups of facets. */
  readonly residual: readonly (readonly string[])[];
  /** Whether nothing but sort keys narrows the rows. */
  readonly isWhole: boolean;
}

export function readingOf(resource: Resource, { filters, parts }: Selection): Reading {
  const keyed = filters.filter(({ field }) => field in resource.sortKeys);
  const faceted = filters.filter((filter) => !keyed.includes(filter) && filter.field in (resource.facets ?? {}));
  const equals = keyed.map(({ field, values }) => ({ field, key: values[0] ?? '' }));
  const references = filters.filter((filter) => !keyed.includes(filter) && !faceted.includes(filter));

  const groups = faceted.map(({ field, values }) => values.map((value) => facetKey(field, value)));
  const shown = parts ? [parts.map(partKey)] : [];
  const [first, ...rest] = groups;
  const common = { equals, references };
  const [reference] = references;
  if (reference) {
    return {
      ...common,
      driving: [],
      overlapping: reference.values.length > 1,
      residual: [...groups, ...shown],
      isWhole: false,
    };
  }
  // A sort key is a better guide than a facet.
  if (first && equals.length === 0) {
    return { ...common, driving: first, overlapping: first.length > 1, residual: [...rest, ...shown], isWhole: false };
  }
  const driving = shown[0] ?? wholeOf(resource);
  return { ...common, driving, overlapping: false, residual: groups, isWhole: !parts && groups.length === 0 };
}

/** The facets whose lists together hold everything, each row once. */
const wholeOf = ({ hidden }: Resource): string[] => (hidden ? [SHOWN, ...Object.keys(hidden)].map(partKey) : ['']);
