import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Uid } from '../../base/uid.ts';
import type { Row } from '../../store/store.ts';
import type { Order } from './order.ts';
import type { CountedTotal, Cursor } from './page-token.ts';

/** A row of a page: its uid, and the sort keys `k0`, `k1`… that a cursor needs. */
export interface PageRow extends Row {
  readonly uid: Uid;
}

export interface PageWindow {
  /** The last row of the page before. */
  readonly cursor: Cursor | undefined;
  readonly limit: number;
  readonly skip: number;
}

/** Reads one list. */
export interface ListPlan {
  total(): MaybePromise<number>;
  /** Returns the total for the next page token; undefined if it is known without counting rows. */
  countedTotal(): MaybePromise<CountedTotal | undefined>;
  page(window: PageWindow): MaybePromise<PageRow[]>;
}

/** Compares the UTF-8 bytes of texts, as both databases do. The order of UTF-16 differs for surrogate pairs only. */
export function compareBytes(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at++) {
    const difference = rank(a.charCodeAt(at)) - rank(b.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Ranks surrogates after all other code units: they encode the characters after U+FFFF. */
const rank = (unit: number): number => ((unit & 0xf800) === 0xd800 ? unit + 0x10000 : unit);

/** Returns a comparison that orders rows as the statements do. */
export function comparePageRows({ terms, uidDescending }: Order) {
  const keys = terms.map(({ descending }, i) => ({ key: `k${i}`, descending }));
  return (a: Row, b: Row): number => {
    for (const { key, descending } of keys) {
      const difference = compareBytes(a[key] as string, b[key] as string);
      if (difference !== 0) return descending ? -difference : difference;
    }
    const difference = compareBytes(a.uid as string, b.uid as string);
    return uidDescending ? -difference : difference;
  };
}
