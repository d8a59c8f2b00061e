import type { Uid } from '../../base/uid.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { collectionPlan } from './collection-plan.ts';
import { UNORDERED } from './order.ts';
import { visibleRange } from './visible-range.ts';

/** Returns the uids of up to two resources within reach with this name. If there are two, the name is ambiguous. */
export const findByName = (db: Reader, resource: Resource, reach: readonly Uid[], name: string): Promise<Uid[]> =>
  findByValue(db, resource, reach, { field: 'name', values: [name] }, 2);

/** Returns the uids of up to `limit` resources within reach that have one of the values in an order, facet or reference. */
export async function findByValue(
  db: Reader,
  resource: Resource,
  reach: readonly Uid[],
  filter: { readonly field: string; readonly values: readonly string[] },
  limit: number,
): Promise<Uid[]> {
  const range = visibleRange(resource, {}, reach);
  if (!('collections' in range)) return [];
  const plan = await collectionPlan(db, resource, range, { filters: [filter] }, UNORDERED);
  return (await plan.page({ cursor: undefined, limit, skip: 0 })).map(({ uid }) => uid);
}
