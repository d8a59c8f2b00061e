import type { Maybe, Row } from '../../store/store.ts';
import type { Cursor } from './page-token.ts';

/** The row has one of the values under a sort key or in what it is found by; or, with `lacks`, none of them. */
export interface Filter {
  readonly field: string;
  readonly values: readonly string[];
  readonly lacks?: boolean;
}

/** Which rows of its extent a list shows. */
export interface Selection {
  readonly filters: readonly Filter[];
  /** The parts of the list that are shown; absent when all are. */
  readonly parts?: readonly string[] | undefined;
  /** The least that a sort key may be. */
  readonly since?: { readonly field: string; readonly key: string } | undefined;
}

/** A row of a page: its message, and the sort keys `k0`, `k1`… that a cursor needs. */
export interface PageRow extends Row {
  readonly uid: string;
  readonly body: Uint8Array;
}

export interface Window {
  /** The last row of the page before. */
  readonly cursor: Cursor | undefined;
  readonly limit: number;
  readonly skip: number;
}

/** How one list will be read. */
export interface Plan {
  total(): Maybe<number>;
  page(window: Window): Maybe<PageRow[]>;
}

/** Bytewise, as both databases compare; the order of UTF-16 code units differs beyond the basic plane. */
export function compareBytes(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Orders rows the way the statements do. */
export function comparePageRows(descending: readonly boolean[], uidDescending: boolean) {
  return (a: PageRow, b: PageRow): number => {
    for (const [i, isDescending] of descending.entries()) {
      const difference = compareBytes(a[`k${i}`] as string, b[`k${i}`] as string);
      if (difference !== 0) return isDescending ? -difference : difference;
    }
    const difference = compareBytes(a.uid, b.uid);
    return uidDescending ? -difference : difference;
  };
}
