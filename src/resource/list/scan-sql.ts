import type { Filter } from './conditions.ts';
import type { Order } from './order.ts';
import { padToPowerOfTwo } from './pad-to-power-of-two.ts';
import type { ListCheck, Scan } from './scan.ts';

/** Returns the placeholder `$n` of a named parameter. Equal names are one parameter. */
export type Placeholder = (name: string) => string;

/** The parameters of a scan, by name. */
export function scanParameters({ checks, ...range }: Scan): Record<string, string | number | null> {
  const values: Record<string, string | number | null> = {};
  for (const [name, value] of Object.entries(range)) if (value !== undefined && name !== 'from') values[name] = value;
  for (const [c, { lists }] of checks.entries()) {
    for (const [l, list] of padToPowerOfTwo(lists).entries()) values[`check${c}_${l}`] = list;
  }
  return values;
}

/** Describes everything in a scan that changes the text of its SQL. */
export function scanTextKey(scan: Scan): string {
  const isOfChildren = 'parent' in scan && scan.parent !== undefined;
  const checks = scan.checks.map(
    ({ lists, sort, excludes }) => `${excludes ? '-' : '+'}${sort}${padToPowerOfTwo(lists).length}`,
  );
  return [scan.from, isOfChildren ? 'c' : '', ...checks].join('');
}

/** Whether there are several scans that have the same SQL, and each of them reads its rows in this order. */
export function canLoop(scans: readonly Scan[], sort: string, { terms }: Order): boolean {
  const [first, ...others] = scans;
  if (first === undefined || others.length === 0) return false;
  const [term, another] = terms;
  const isSorted = another === undefined && (term === undefined || (first.from === 'list' && term.field === sort));
  const textKey = scanTextKey(first);
  return isSorted && others.every((scan) => scanTextKey(scan) === textKey);
}

/**
 * The table that a scan reads, with the conditions on its rows. `shared` gives the placeholders of parameters that all
 * scans of a statement share, `own` those of `scanParameters`.
 */
export function scanTable(
  scan: Scan,
  sort: string,
  shared: Placeholder,
  own: Placeholder,
): { table: string; uid: string; where: string[] } {
  const underParent = 'parent' in scan && scan.parent !== undefined ? [`r.parent = ${own('parent')}`] : [];
  switch (scan.from) {
    case 'parent':
      return { table: 'resource r', uid: 'r.uid', where: [`r.kind = ${shared('kind')}`, ...underParent] };
    case 'range':
      return {
        table: 'resource r',
        uid: 'r.uid',
        where: [`r.kind = ${shared('kind')}`, ...inRange('r.uid', own)],
      };
    case 'reference':
      return {
        table: 'reference e',
        uid: 'e.uid',
        where: [
          ...[`e.kind = ${shared('kind')}`, `e.field = ${own('field')}`, `e.value = ${own('value')}`],
          ...inRange('e.uid', own),
          ...underParent,
        ],
      };
    case 'list':
      return {
        table: 'entry e',
        uid: 'e.uid',
        where: [
          ...[`e.list = ${own('list')}`, `e.sort = ${shared('sort')}`],
          // Always true. With it the planner knows that the index returns the rows in uid order.
          ...(sort === 'uid' ? ["e.key = ''"] : []),
          ...underParent,
        ],
      };
  }
}

const inRange = (uid: string, own: Placeholder): string[] => [`${uid} >= ${own('low')}`, `${uid} < ${own('high')}`];

/**
 * The condition that the row `uid` is in one of the lists of `check`. `key` is its sort key in the order of `check`.
 */
export function listCondition(
  { lists, sort, excludes }: ListCheck,
  uid: string,
  key: string,
  placeholder: (at: number) => string,
): string {
  const isListed = `x.list IN (${placeholders(lists, placeholder)}) AND x.sort = '${sort}' AND x.key = ${key}`;
  return existsCondition(excludes, `entry x WHERE ${isListed}`, uid);
}

/** The condition that the row `uid` has one of the values of a reference. */
export function referenceCondition(
  { field, values, excludes = false }: Filter,
  kind: string,
  uid: string,
  placeholder: (at: number) => string,
): string {
  const refers = `x.kind = ${kind} AND x.field = '${field}' AND x.value IN (${placeholders(values, placeholder)})`;
  return existsCondition(excludes, `reference x WHERE ${refers}`, uid);
}

const placeholders = (values: readonly unknown[], placeholder: (at: number) => string): string =>
  padToPowerOfTwo(values)
    .map((_, at) => placeholder(at))
    .join(', ');

/** LIMIT keeps PostgreSQL from turning the lookup by key into a join, which it plans badly without statistics. */
const existsCondition = (not: boolean, tableAndWhere: string, uid: string): string =>
  `${not ? 'NOT ' : ''}EXISTS (SELECT 1 FROM ${tableAndWhere} AND x.uid = ${uid} LIMIT 1 OFFSET 0)`;
