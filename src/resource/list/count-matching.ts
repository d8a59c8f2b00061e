import type { Uid } from '../../base/uid.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { collectionPlan } from './collection-plan.ts';
import type { ListConditions } from './conditions.ts';
import { UNORDERED } from './order.ts';
import { visibleRange } from './visible-range.ts';

/** Counts the resources within reach that meet the conditions, from the sizes of lists where possible. */
export async function countMatching(
  db: Reader,
  resource: Resource,
  reach: readonly Uid[],
  conditions: ListConditions,
): Promise<number> {
  const range = visibleRange(resource, {}, reach);
  if (!('collections' in range)) return 0;
  return (await collectionPlan(db, resource, range, conditions, UNORDERED)).total();
}
