import type { Reader } from '../../store/store.ts';
import { PARTITION, type Resource, type Stored } from '../definition.ts';
import { findAll } from '../read.ts';
import type { Order } from './order.ts';
import { comparePageRows, type PageRow, type Plan, type Selection } from './plan.ts';

/** Lists a known handful of uids: fetched, filtered and sorted right here. */
export async function uidListPlan(
  db: Reader,
  resource: Resource,
  uids: readonly string[],
  selection: Selection,
  order: Order,
): Promise<Plan> {
  const stored = await findAll(db, resource, uids);
  const kept = stored.filter((row) => isSelected(resource, row, selection));
  const compare = comparePageRows(order);
  const rows = kept
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
      const last = cursor && ({ uid: cursor.uid, ...Object.fromEntries(keys) } as PageRow);
      const rest = last ? rows.filter((row) => compare(row, last) > 0) : rows;
      return rest.slice(skip, skip + limit);
    },
  };
}

function isSelected(resource: Resource, row: Stored, { filters, parts, since }: Selection): boolean {
  const ownOf = (field: string): readonly string[] => {
    const key = resource.sortKeys[field];
    return key ? [key(row)] : [...(resource.values[field]?.(row.message, row.state) ?? [])];
  };
  if (parts && !ownOf(PARTITION).some((part) => parts.includes(part))) return false;
  if (since && ownOf(since.field).some((key) => key < since.key)) return false;
  return filters.every(
    ({ field, values, excludes: lacks = false }) => ownOf(field).some((own) => values.includes(own)) !== lacks,
  );
}
