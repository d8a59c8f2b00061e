import type { Reader, Row, Store } from './store.ts';

/** `waiting` until no server with other declarations is connected; `purging` and `building` as the names say. */
export type IndexPhase = 'complete' | 'waiting' | 'purging' | 'building';

/** What the listing index of a kind consists of. src/resource/index/index-parts.ts explains the names of parts. */
export interface ListingIndex {
  readonly kind: string;
  /** The parts that have all resources. Only these may be read. */
  readonly parts: ReadonlySet<string>;
  /** The parts that are being built. */
  readonly building: ReadonlySet<string>;
  /** The parts that are no longer declared, and whose rows have not been deleted yet. */
  readonly dropping: ReadonlySet<string>;
  readonly generation: number;
  readonly phase: IndexPhase;
}

/** The listing indexes of a database as they were when last read, by kind. */
export interface ListingIndexes {
  get(kind: string): ListingIndex | undefined;
  refresh(): Promise<void>;
}

interface IndexRow extends Row {
  readonly kind: string;
  readonly parts: string;
  readonly building: string;
  readonly dropping: string;
  readonly generation: number;
  readonly phase: IndexPhase;
}

const COLUMNS = 'kind, parts, building, dropping, generation, phase';
const FIND_ALL = `SELECT ${COLUMNS} FROM listing_index`;
const FIND = `SELECT ${COLUMNS} FROM listing_index WHERE kind = $1`;

const setOf = (json: string): ReadonlySet<string> => new Set(JSON.parse(json) as string[]);

const toIndex = ({ parts, building, dropping, ...row }: IndexRow): ListingIndex => ({
  ...row,
  parts: setOf(parts),
  building: setOf(building),
  dropping: setOf(dropping),
});

export async function findListingIndexes(db: Reader): Promise<Map<string, ListingIndex>> {
  return new Map((await db.all<IndexRow>(FIND_ALL)).map((row) => [row.kind, toIndex(row)]));
}

/** With `tx.forShare` as `db`, the index stays in its phase until the commit. */
export async function findListingIndex(db: Reader, kind: string): Promise<ListingIndex | undefined> {
  const row = await db.get<IndexRow>(FIND, kind);
  return row && toIndex(row);
}

/** Returns the same store, whose readers and transactions know the listing indexes. */
export async function withListingIndexes(store: Store): Promise<Store> {
  let indexes = await findListingIndexes(store.reader);
  const listingIndexes: ListingIndexes = {
    get: (kind) => indexes.get(kind),
    async refresh() {
      indexes = await findListingIndexes(store.reader);
    },
  };
  return {
    ...store,
    reader: { ...store.reader, listingIndexes },
    // Each write has a transaction object of its own.
    write: (work, options) => store.write((tx) => work(Object.assign(tx, { listingIndexes })), options),
  };
}
