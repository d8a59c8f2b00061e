import { createLru } from '../base/lru.ts';

/**
 * What was made of rows, for as long as they are as they were. Offered by a database that can tell when this ends: SQLite,
 * where this process sees its own changes row by row and can ask whether anybody else made some.
 */
export interface RowCache {
  /** Looks whether another process has changed anything, and forgets everything if so. */
  revalidate(): void;
  /** What is known under the key of a row, as new as the last `renew` of this turn of the event loop; that comes by itself. */
  get(kind: string, key: string): unknown;
  /** To be taken before rows are read of which something is to be kept. */
  epoch(): number;
  /** Keeps what was made of a row that was read after `mark`, unless anything has changed since. */
  put(mark: number, kind: string, key: string, value: NonNullable<unknown>): void;
}

export interface WritableRowCache extends RowCache {
  /** Rows with these keys have other contents from now on. */
  invalidate(keys: ReadonlySet<string>): void;
}

/** With the decoded message and its JSON a usual row takes 3 KB. */
const MAX_ROWS = 2_000;

interface CachedRow {
  readonly kind: string;
  readonly value: NonNullable<unknown>;
}

/** `othersVersion` differs after every commit of another process, and only then; undefined when that cannot be told. */
export function createRowCache(othersVersion: () => number | undefined): WritableRowCache {
  // Two kinds may share a key; the later one then takes the place.
  let known = createLru<string, CachedRow>(MAX_ROWS);
  let version: number | undefined;
  let moment = 0;
  let isRenewed = false;
  const nextTurn = (): void => {
    isRenewed = false;
  };

  function renew(): void {
    const newest = othersVersion();
    if (newest === undefined || newest !== version) {
      version = newest;
      moment++;
      known = createLru(MAX_ROWS);
    }
    if (isRenewed) return;
    isRenewed = true;
    setImmediate(nextTurn);
  }

  return {
    revalidate: renew,
    get(kind, key) {
      if (!isRenewed) renew();
      const found = known.get(key);
      return found?.kind === kind ? found.value : undefined;
    },
    epoch() {
      if (!isRenewed) renew();
      return moment;
    },
    put(mark, kind, key, value) {
      if (mark === moment) known.set(key, { kind, value });
    },
    invalidate(keys) {
      moment++;
      if (keys.size > MAX_ROWS) known = createLru(MAX_ROWS);
      else for (const key of keys) known.delete(key);
    },
  };
}
