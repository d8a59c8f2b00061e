import { createLru } from '../base/lru.ts';

/**
 * Caches objects that were made from rows until the rows change. Only SQLite has it: there this process sees its own
 * changes row by row, and can query whether another process has written.
 */
export interface RowCache {
  /** Checks whether another process has written, and empties the cache if so. */
  revalidate(): void;
  /**
   * Returns the object that was cached for a row, or undefined. It is as new as the last `revalidate` in this turn of
   * the event loop. The first call in a turn revalidates.
   */
  get(kind: string, key: string): unknown;
  /** Returns the current epoch, for `put`. Must be called before the rows are read. */
  epoch(): number;
  /** Caches an object made from a row that was read after `epoch()`. Does nothing if any row has changed since. */
  put(epoch: number, kind: string, key: string, value: NonNullable<unknown>): void;
}

export interface WritableRowCache extends RowCache {
  /** Removes rows that have changed, by their keys. */
  invalidate(keys: ReadonlySet<string>): void;
}

/** A usual row takes 3 KB with the decoded message and its JSON. */
const MAX_ROWS = 2_000;

interface CachedRow {
  readonly kind: string;
  readonly value: NonNullable<unknown>;
}

/**
 * `externalVersion` changes with every commit of another process, and only then. It returns undefined when it fails.
 */
export function createRowCache(externalVersion: () => number | undefined): WritableRowCache {
  // Rows of two kinds may have the same key. Then the later one replaces the earlier one.
  let rows = createLru<string, CachedRow>(MAX_ROWS);
  let version: number | undefined;
  let currentEpoch = 0;
  let isValidated = false;
  const onNextTurn = (): void => {
    isValidated = false;
  };

  function revalidate(): void {
    const newest = externalVersion();
    if (newest === undefined || newest !== version) {
      version = newest;
      currentEpoch++;
      rows = createLru(MAX_ROWS);
    }
    if (isValidated) return;
    isValidated = true;
    setImmediate(onNextTurn);
  }

  return {
    revalidate,
    get(kind, key) {
      if (!isValidated) revalidate();
      const row = rows.get(key);
      return row?.kind === kind ? row.value : undefined;
    },
    epoch() {
      if (!isValidated) revalidate();
      return currentEpoch;
    },
    put(epoch, kind, key, value) {
      if (epoch === currentEpoch) rows.set(key, { kind, value });
    },
    invalidate(keys) {
      currentEpoch++;
      if (keys.size > MAX_ROWS) rows = createLru(MAX_ROWS);
      else for (const key of keys) rows.delete(key);
    },
  };
}
