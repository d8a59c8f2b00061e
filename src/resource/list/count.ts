import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { indexedPlan } from './indexed-plan.ts';
import { UNORDERED } from './order.ts';
import type { Selection } from './plan.ts';
import { visibleRange } from './visible-range.ts';

/** How many resources within reach a selection has, from the counters of the listing index where they know. */
export async function countSelected(
  db: Reader,
  resource: Resource,
  reach: readonly string[],
  selection: Selection,
): Promise<number> {
  const extent = visibleRange(resource, undefined, reach);
  if (!('collections' in extent)) return 0;
  return (await indexedPlan(db, resource, extent, selection, UNORDERED)).total();
}
