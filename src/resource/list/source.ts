import type { Order } from './order.ts';
import { padToPowerOfTwo } from './pad.ts';
import type { Cursor } from './page-token.ts';
import type { Filter } from './plan.ts';

/** One run of rows inside the extent of a list; a page merges the heads of a few of them. */
export type Source = Run & { readonly checks: readonly Check[] };

type Run =
  /** A subtree in uid order, straight from the primary key. */
  | { readonly from: 'range'; readonly low: string; readonly high: string }
  /** The children of a uid in uid order. */
  | { readonly from: 'parent'; readonly parent: string }
  /** A list of the listing index, in one of its orders. */
  | {
      readonly from: 'list';
      readonly list: number;
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
      readonly parent: string | undefined;
    };

/** Rows stand in one of these lists, or in none. One that does not exist is null, and has no rows. */
export interface Check {
  readonly lists: readonly (number | null)[];
  /** An order that these lists are kept in. */
  readonly sort: string;
  readonly lacks: boolean;
}

/** SQLite takes at most 500 terms in a compound SELECT; callers with more scopes are served in several rounds. */
const SOURCES_PER_ROUND = 128;

/** What is read for one collection stays together, because only there a row may stand in several sources. */
export function inRounds(groups: readonly (readonly Source[])[]): Source[][] {
  const rounds: Source[][] = [];
  for (const group of groups) {
    const last = rounds.at(-1);
    if (last && last.length + group.length <= SOURCES_PER_ROUND) last.push(...group);
    else if (group.length > 0) rounds.push([...group]);
  }
  return rounds;
}

/**
 * A source from the cursor on, where it is read in uid order. The statement says the same in words of its own, but of two
 * lower bounds SQLite seeks one and walks from there to the other: the last pages of 120,000 rows took 49 ms instead of 0.2.
 */
export function fromCursor(source: Source, { terms, uidDescending }: Order, cursor: Cursor | undefined): Source {
  if (cursor === undefined || terms.length > 0 || !('low' in source)) return source;
  const { low, high } = source;
  const { uid } = cursor;
  if (uidDescending) return uid < high ? { ...source, high: uid } : source;
  return uid > low ? { ...source, low: uid } : source;
}

/** Names a parameter and answers its `$n`; the same name is the same parameter. */
export type Slot = (name: string) => string;

/** What tells a source from others of the same form, by name. */
export function valuesOf({ checks, ...run }: Source): Record<string, string | number | null> {
  const values: Record<string, string | number | null> = {};
  for (const [name, value] of Object.entries(run)) if (value !== undefined && name !== 'from') values[name] = value;
  for (const [c, { lists }] of checks.entries()) {
    for (const [l, list] of padToPowerOfTwo(lists).entries()) values[`check${c}_${l}`] = list;
  }
  return values;
}

/** What of a source shapes the text of a statement. */
export function formOf(source: Source): string {
  const isChild = 'parent' in source && source.parent !== undefined;
  const checks = source.checks.map(
    ({ lists, sort, lacks }) => `${lacks ? '-' : '+'}${sort}${padToPowerOfTwo(lists).length}`,
  );
  return [source.from, isChild ? 'c' : '', ...checks].join('');
}

/** Whether these are several runs of one form, each of which comes in this order by itself. */
export function isLoop(sources: readonly Source[], sort: string, { terms }: Order): boolean {
  const [first, ...others] = sources;
  if (first === undefined || others.length === 0) return false;
  const [term, another] = terms;
  const isSorted = another === undefined && (term === undefined || (first.from === 'list' && term.field === sort));
  const form = formOf(first);
  return isSorted && others.every((source) => formOf(source) === form);
}

/** Where the rows of a source come from, and what makes them its rows; `at` names the values that are its own. */
export function tableOf(
  source: Source,
  sort: string,
  slot: Slot,
  at: Slot,
): { table: string; uid: string; where: string[] } {
  const underParent = 'parent' in source && source.parent !== undefined ? [`r.parent = ${at('parent')}`] : [];
  switch (source.from) {
    case 'parent':
      return { table: 'resource r', uid: 'r.uid', where: [`r.kind = ${slot('kind')}`, ...underParent] };
    case 'range':
      return {
        table: 'resource r',
        uid: 'r.uid',
        where: [`r.kind = ${slot('kind')}`, ...between('r.uid', at)],
      };
    case 'reference':
      return {
        table: 'reference e',
        uid: 'e.uid',
        where: [
          ...[`e.kind = ${slot('kind')}`, `e.field = ${at('field')}`, `e.value = ${at('value')}`],
          ...between('e.uid', at),
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
          ...underParent,
        ],
      };
  }
}

const between = (uid: string, at: (name: string) => string): string[] => [
  `${uid} >= ${at('low')}`,
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
  const { field, values, excludes: lacks = false } = filter;
  const having = `x.kind = ${kind} AND x.field = '${field}' AND x.value IN (${slots(values, slot)})`;
  return exists(lacks, `reference x WHERE ${having}`, uid);
}

const slots = (values: readonly unknown[], slot: (at: number) => string): string =>
  padToPowerOfTwo(values)
    .map((_, at) => slot(at))
    .join(', ');

/** The limit keeps PostgreSQL from making a join of what shall be a key look-up per row: without statistics it joins badly. */
const exists = (not: boolean, where: string, uid: string): string =>
  `${not ? 'NOT ' : ''}EXISTS (SELECT 1 FROM ${where} AND x.uid = ${uid} LIMIT 1 OFFSET 0)`;
