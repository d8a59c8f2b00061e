import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { indexedPlan } from './indexed-plan.ts';
import { UNORDERED } from './order.ts';
import { visibleRange } from './visible-range.ts';

/** Up to two uids of resources with this name within reach: one is an answer, two are a question to the caller. */
export async function findByName(
  db: Reader,
  resource: Resource,
  reach: readonly string[],
  name: string,
): Promise<string[]> {
  const extent = visibleRange(resource, undefined, reach);
  if (!('collections' in extent)) return [];
  const selection = { filters: [{ field: 'name', values: [name] }] };
  const plan = await indexedPlan(db, resource, extent, selection, UNORDERED);
  return (await plan.page({ cursor: undefined, limit: 2, skip: 0 })).map(({ uid }) => uid);
}
