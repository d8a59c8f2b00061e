import type { Uid } from '../../base/uid.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { collectionPlan } from './collection-plan.ts';
import { UNORDERED } from './order.ts';
import { visibleRange } from './visible-range.ts';

/** Returns the uids of up to two resources within reach with this name. If there are two, the name is ambiguous. */
export async function findByName(db: Reader, resource: Resource, reach: readonly Uid[], name: string): Promise<Uid[]> {
  const range = visibleRange(resource, undefined, reach);
  if (!('collections' in range)) return [];
  const conditions = { filters: [{ field: 'name', values: [name] }] };
  const plan = await collectionPlan(db, resource, range, conditions, UNORDERED);
  return (await plan.page({ cursor: undefined, limit: 2, skip: 0 })).map(({ uid }) => uid);
}
