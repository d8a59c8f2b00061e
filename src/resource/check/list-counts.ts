import { createLru } from '../../base/lru.ts';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Reader, Row } from '../../store/store.ts';

const FIND_LISTS = `SELECT id, scope FROM list WHERE kind = $1 AND facet = $2 AND scope IN (${batchPlaceholders(3)})`;
const LAST_ID = 'SELECT max(id) AS id FROM list';
/** The lists of the last resources, of which the next ones share most. */
const CACHED = 20_000;

interface Listed {
  readonly scope: string;
  readonly facet: string;
}
interface ListRow extends Row {
  readonly id: number;
  readonly scope: string;
}

/** Counts how many members each list should have. Takes four bytes per list. */
export interface ListCounts {
  /** Returns a function that returns the id of each of `lists`, or undefined if the list does not exist. */
  findIds(db: Reader, kind: string, lists: readonly Listed[]): Promise<(list: Listed) => number | undefined>;
  expect(list: number): void;
  expected(list: number): number;
  /** Remembers that an entry of the list is missing. */
  suspect(list: number): void;
  isSuspect(list: number): boolean;
}

export async function createListCounts(db: Reader): Promise<ListCounts> {
  const last = Number((await db.get<{ id: number | null }>(LAST_ID))?.id ?? 0);
  const members = new Uint32Array(last + 1);
  const suspects = new Set<number>();
  const cache = createLru<string, number>(CACHED);

  return {
    async findIds(db, kind, lists) {
      const ids = new Map<string, number>();
      const unknown = new Map<string, Listed>();
      for (const list of lists) {
        const key = `${list.scope} ${list.facet}`;
        const id = ids.get(key) ?? cache.get(`${kind} ${key}`);
        if (id === undefined) unknown.set(key, list);
        else ids.set(key, id);
      }
      for (const [facet, ofFacet] of Map.groupBy(unknown.values(), (list) => list.facet)) {
        for (const some of parameterBatches(ofFacet.map(({ scope }) => scope))) {
          for (const { id, scope } of await db.all<ListRow>(FIND_LISTS, kind, facet, ...some)) {
            ids.set(`${scope} ${facet}`, id);
            cache.set(`${kind} ${scope} ${facet}`, id);
          }
        }
      }
      return ({ scope, facet }) => ids.get(`${scope} ${facet}`);
    },
    expect(list) {
      members[list] = (members[list] ?? 0) + 1;
    },
    expected: (list) => members[list] ?? 0,
    suspect: (list) => void suspects.add(list),
    isSuspect: (list) => suspects.has(list),
  };
}
