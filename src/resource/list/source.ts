import { padded } from './padded.ts';
import type { Filter } from './plan.ts';

/** One run of rows inside the extent of a list; a page merges the heads of a few of them. */
export type Source = Run & { readonly checks: readonly Check[] };

type Run =
  /** A subtree in uid order, straight from the primary key. */
  | { readonly from: 'range'; readonly low: string; readonly high: string; readonly withLow: boolean }
  /** The children of a uid in uid order. */
  | { readonly from: 'parent'; readonly parent: string }
  /** A list of the listing index, in one of its orders. */
  | {
      readonly from: 'list';
      readonly list: number;
      readonly without: string | undefined;
      /** When only what lies directly under it counts. */
      readonly parent: string | undefined;
    }
  /** Those of a subtree that have a value of a reference, in uid order. */
  | {
      readonly from: 'reference';
      readonly field: string;
      readonly value: string;
      readonly low: string;
      readonly high: string;
      readonly withLow: boolean;
      readonly parent: string | undefined;
    };

/** Rows stand in one of these lists, or in none. */
export interface Check {
  readonly lists: readonly number[];
  /** An order that these lists are kept in. */
  readonly sort: string;
  readonly lacks: boolean;
}

/** Names a parameter and answers its `$n`; the same name is the same parameter. */
export type Slot = (name: string) => string;

/** Where the rows of a source come from, and what makes them its rows. */
export function tableOf(
  source: Source,
  i: number,
  slot: Slot,
  sort: string,
): { table: string; uid: string; where: string[] } {
  const at = (name: string) => slot(`${name}${i}`);
  const underParent = 'parent' in source && source.parent !== undefined ? [`r.parent = ${at('parent')}`] : [];
  switch (source.from) {
    case 'parent':
      return { table: 'resource r', uid: 'r.uid', where: [`r.kind = ${slot('kind')}`, ...underParent] };
    case 'range':
      return {
        table: 'resource r',
        uid: 'r.uid',
        where: [`r.kind = ${slot('kind')}`, ...between('r.uid', source, at)],
      };
    case 'reference':
      return {
        table: 'reference e',
        uid: 'e.uid',
        where: [
          ...[`e.kind = ${slot('kind')}`, `e.field = ${at('field')}`, `e.value = ${at('value')}`],
          ...between('e.uid', source, at),
          ...underParent,
        ],
      };
    case 'list':
      return {
        table: 'entry e',
        uid: 'e.uid',
        where: [
          ...[`e.list = ${at('list')}`, `e.sort = ${slot('sort')}`],
          // Said aloud, so that the index is seen to have the rest in order.
          ...(sort === 'uid' ? ["e.key = ''"] : []),
          ...(source.without === undefined ? [] : [`e.uid <> ${at('without')}`]),
          ...underParent,
        ],
      };
  }
}

const between = (uid: string, { withLow }: { readonly withLow: boolean }, at: (name: string) => string): string[] => [
  `${uid} ${withLow ? '>=' : '>'} ${at('low')}`,
  `${uid} < ${at('high')}`,
];

/** Whether the row `uid`, with `key` in the order of the check, stands in one of its lists. */
export function isListed(check: Check, uid: string, key: string, slot: (at: number) => string): string {
  const { lists, sort, lacks } = check;
  const having = `x.list IN (${slots(lists, slot)}) AND x.sort = '${sort}' AND x.key = ${key}`;
  return exists(lacks, `entry x WHERE ${having}`, uid);
}

/** Whether the row `uid` has one of these values of a reference. */
export function refers(filter: Filter, kind: string, uid: string, slot: (at: number) => string): string {
  const { field, values, lacks = false } = filter;
  const having = `x.kind = ${kind} AND x.field = '${field}' AND x.value IN (${slots(values, slot)})`;
  return exists(lacks, `reference x WHERE ${having}`, uid);
}

const slots = (values: readonly unknown[], slot: (at: number) => string): string =>
  padded(values)
    .map((_, at) => slot(at))
    .join(', ');

/** The limit keeps PostgreSQL from making a join of what shall be a key look-up per row: without statistics it joins badly. */
const exists = (not: boolean, where: string, uid: string): string =>
  `${not ? 'NOT ' : ''}EXISTS (SELECT 1 FROM ${where} AND x.uid = ${uid} LIMIT 1 OFFSET 0)`;
