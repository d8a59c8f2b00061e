import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Row } from '../../store/store.ts';
import type { Order } from './order.ts';
import type { CountedTotal, Cursor } from './page-token.ts';

/** The row has one of the values under a sort key or in what it is found by; or, with `lacks`, none of them. */
export interface Filter {
  readonly field: string;
  readonly values: readonly string[];
  readonly excludes?: boolean;
}

/** Which rows of its extent a list shows. */
export interface Selection {
  readonly filters: readonly Filter[];
  /** The parts of the list that are shown; absent when all are. */
  readonly parts?: readonly string[] | undefined;
  /** The least that a sort key may be. */
  readonly since?: { readonly field: string; readonly key: string } | undefined;
}

/** A row of a page: its uid, and the sort keys `k0`, `k1`… that a cursor needs. */
export interface PageRow extends Row {
  readonly uid: string;
}

export interface Window {
  /** The last row of the page before. */
  readonly cursor: Cursor | undefined;
  readonly limit: number;
  readonly skip: number;
}

/** How one list will be read. */
export interface Plan {
  total(): MaybePromise<number>;
  /** The total, if it took counting, for the next page of the same walk. */
  countedTotal(): MaybePromise<CountedTotal | undefined>;
  page(window: Window): MaybePromise<PageRow[]>;
}

/** Bytewise, as both databases compare UTF-8. UTF-16 has the same order, but for what it writes as a pair. */
export function compareBytes(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at++) {
    const difference = rank(a.charCodeAt(at)) - rank(b.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Halves of pairs stand for what lies beyond all that is written by a single unit. */
const rank = (unit: number): number => ((unit & 0xf800) === 0xd800 ? unit + 0x10000 : unit);

/** Orders rows the way the statements do. */
export function comparePageRows({ terms, uidDescending }: Order) {
  const keys = terms.map(({ descending }, i) => ({ key: `k${i}`, descending }));
  return (a: PageRow, b: PageRow): number => {
    for (const { key, descending } of keys) {
      const difference = compareBytes(a[key] as string, b[key] as string);
      if (difference !== 0) return descending ? -difference : difference;
    }
    const difference = compareBytes(a.uid, b.uid);
    return uidDescending ? -difference : difference;
  };
}
