import type { Reader } from '../../store/store.ts';
import { PARTITION, type Resource, type Stored } from '../definition.ts';
import { findAll, type StoredWithBody } from '../read.ts';
import type { ListConditions } from './conditions.ts';
import type { Order } from './order.ts';
import { comparePageRows, type ListPlan, type PageRow } from './plan.ts';

/** Lists the resources with the given uids, which must be few: reads all of them, then filters and sorts in memory. */
export async function uidListPlan(
  db: Reader,
  resource: Resource,
  uids: readonly string[],
  conditions: ListConditions,
  order: Order,
): Promise<ListPlan> {
  return listInMemory(resource, await findAll(db, resource, uids), conditions, order);
}

/** Lists the given resources: filters and sorts them in memory. */
export function listInMemory(
  resource: Resource,
  stored: readonly StoredWithBody[],
  conditions: ListConditions,
  order: Order,
): ListPlan {
  const compare = comparePageRows(order);
  const rows = stored
    .filter((row) => matches(resource, row, conditions))
    .map((row) => {
      const keys = order.terms.map((term, i) => [`k${i}`, resource.sortKeys[term.field]?.(row) ?? '']);
      return { uid: row.uid, body: row.body, ...Object.fromEntries(keys) } as PageRow;
    })
    .sort(compare);

  return {
    total: () => rows.length,
    countedTotal: () => undefined,
    page({ cursor, limit, skip }) {
      const keys = cursor?.keys.map((key, i) => [`k${i}`, key]) ?? [];
      const last = cursor && { uid: cursor.uid, ...Object.fromEntries(keys) };
      const remaining = last ? rows.filter((row) => compare(row, last) > 0) : rows;
      return remaining.slice(skip, skip + limit);
    },
  };
}

function matches(resource: Resource, row: Stored, { filters, partitions, since, before }: ListConditions): boolean {
  const valuesOf = (field: string): readonly string[] => {
    const key = resource.sortKeys[field];
    return key ? [key(row)] : [...(resource.values[field]?.(row.message, row.state) ?? [])];
  };
  if (partitions && !valuesOf(PARTITION).some((partition) => partitions.includes(partition))) return false;
  if (since && valuesOf(since.field).some((key) => key < since.key)) return false;
  if (before && valuesOf(before.field).some((key) => key >= before.key)) return false;
  return filters.every(
    ({ field, values, excludes = false }) => valuesOf(field).some((value) => values.includes(value)) !== excludes,
  );
}
