import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work may hold the event loop until it lets other requests run. */
const SLICE_MS = 10;

/** Divides long work into slices, between which the event loop handles other requests. */
export interface Slices {
  /** Whether the current slice has taken its time. */
  isOver(): boolean;
  /** Ends the slice. Resolves in the next turn of the event loop, with a new slice. */
  next(): Promise<void>;
}

export function startSlices(): Slices {
  let end = performance.now() + SLICE_MS;
  return {
    isOver: () => performance.now() >= end,
    async next() {
      await nextTurn();
      end = performance.now() + SLICE_MS;
    },
  };
}

/** Maps items in slices. A single item is never divided. */
export async function mapInSlices<T, U>(
  items: readonly T[],
  map: (item: T, index: number) => U,
  slices: Slices = startSlices(),
): Promise<U[]> {
  const mapped: U[] = [];
  for (const [index, item] of items.entries()) {
    if (slices.isOver()) await slices.next();
    mapped.push(map(item, index));
  }
  return mapped;
}
