import { ROOT, rangeBelow } from '../../base/uid.ts';
import type { Resource } from '../definition.ts';
import type { Collection } from './extent.ts';
import type { List, Lists } from './lists.ts';
import type { Filter } from './plan.ts';
import { facetsOf, type Reading } from './reading.ts';
import type { Check, Source } from './source.ts';

/** How rows are found. What they are not found by, they are checked for. */
export type Way =
  /** In uid order, one by one. */
  | { readonly by: 'primary key' }
  /** By the lists that hold everything, in one of their orders. */
  | { readonly by: 'whole'; readonly sort: string }
  /** By the lists of a facet, in one of their orders. */
  | { readonly by: 'facet'; readonly sort: string; readonly filter: Filter }
  /** By a reference, in uid order. */
  | { readonly by: 'reference'; readonly filter: Filter };

export interface Survey {
  readonly resource: Resource;
  readonly reading: Reading;
  readonly lists: Lists;
}

/** The runs of rows to read for a collection; none if it cannot have any. */
export function sourcesOf(way: Way, survey: Survey, collection: Collection): Source[] {
  const { reading, lists } = survey;
  const { of, uid, withoutSelf } = collection;
  if (!lists.of(collection, '')?.n) return [];
  const checks = checksOf(way, survey, collection);
  if (checks.some((check) => check.lists.length === 0 && !check.lacks)) return [];

  // Uids begin with hexadecimal digits.
  const [low, high] = uid === ROOT ? ['', 'g'] : rangeBelow(uid);
  const range = { low, high, withLow: !withoutSelf };
  const without = withoutSelf ? uid : undefined;
  // Facets and references know what lies below, of which children may be a part.
  const parent = of === 'children' && !lists.isAllBelow(collection) ? uid : undefined;
  switch (way.by) {
    case 'primary key':
      return [of === 'children' ? { from: 'parent', parent: uid, checks } : { from: 'range', ...range, checks }];
    case 'whole': {
      const found = idsOf(reading.whole.map((facet) => lists.of(collection, facet)));
      return found.map((list) => ({ from: 'list', list, without, parent: undefined, checks }));
    }
    case 'facet': {
      const found = idsOf(facetsOf(way.filter).map((facet) => lists.below(uid, facet)));
      return found.map((list) => ({ from: 'list', list, without, parent, checks }));
    }
    case 'reference': {
      const { field, values } = way.filter;
      return values.map((value) => ({ from: 'reference', field, value, ...range, parent, checks }));
    }
  }
}

function checksOf(way: Way, { resource, reading, lists }: Survey, collection: Collection): Check[] {
  const { facets, parts, whole } = reading;
  const { facet, part } = resource.listOrders;
  const checks = facets
    .filter((filter) => !('filter' in way) || filter !== way.filter)
    .map((filter) => ({
      lists: idsOf(facetsOf(filter).map((facet) => lists.below(collection.uid, facet))),
      sort: facet[0] ?? 'uid',
      lacks: filter.lacks ?? false,
    }));
  if (parts && way.by !== 'whole') {
    const shown = idsOf(whole.map((facet) => lists.of(collection, facet)));
    checks.push({ lists: shown, sort: part[0] ?? 'uid', lacks: false });
  }
  return checks.filter((check) => check.lists.length > 0 || !check.lacks);
}

const idsOf = (lists: readonly (List | undefined)[]): number[] =>
  lists.flatMap((list) => (list && list.n > 0 ? [list.id] : []));
