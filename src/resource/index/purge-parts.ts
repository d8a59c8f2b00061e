import { findListingIndex, type ListingIndex } from '../../store/listing-indexes.ts';
import type { Row, Store, Transaction } from '../../store/store.ts';
import { facetOfList, type PartSet, parsePart } from './index-parts.ts';

/** Rows per statement. */
const ROWS = 500;
/** How long one transaction deletes rows. */
const STEP_MS = 10;

const NEXT_LISTS = `SELECT id, kind, facet FROM list WHERE id > $1 ORDER BY id LIMIT ${ROWS}`;
const DROP_ENTRIES = `DELETE FROM entry WHERE list = $1 AND sort = $2
  AND (key, uid) IN (SELECT key, uid FROM entry WHERE list = $1 AND sort = $2 ORDER BY key, uid LIMIT ${ROWS})`;
const DROP_ALL_ENTRIES = `DELETE FROM entry WHERE list = $1
  AND (sort, key, uid) IN (SELECT sort, key, uid FROM entry WHERE list = $1 ORDER BY sort, key, uid LIMIT ${ROWS})`;
const DROP_LIST = 'DELETE FROM list WHERE id = $1';
const DROP_REFERENCES = `DELETE FROM reference WHERE kind = $1 AND field = $2
  AND (value, uid) IN (SELECT value, uid FROM reference WHERE kind = $1 AND field = $2 ORDER BY value, uid LIMIT ${ROWS})`;

interface ListRow extends Row {
  readonly id: number;
  readonly kind: string;
  readonly facet: string;
}

/** A DELETE of at most ROWS rows, with its parameters. It is repeated until it finds fewer. */
type Deletion = readonly [statement: string, ...params: (string | number)[]];

/**
 * Deletes the rows of parts of the listing index of a kind, in short transactions, and calls `pause` between them. Begins
 * anew after an interruption: what has been deleted already costs little. Throws if the index is no longer in the phase of
 * `index`: another server, which took over from this one, may have built the parts.
 */
export async function purgeParts(
  store: Store,
  { kind, generation, phase }: Pick<ListingIndex, 'kind' | 'generation' | 'phase'>,
  parts: PartSet,
  pause: (stepMs: number) => Promise<void>,
): Promise<void> {
  const run = async (deletions: Deletion[]): Promise<void> => {
    while (deletions.length > 0) {
      deletions = await store.write(async (tx) => {
        const current = await findListingIndex(tx.forShare, kind);
        if (current?.generation !== generation || current.phase !== phase) {
          throw new Error(`the listing index of ${kind} has changed since its rows were to be deleted`);
        }
        return runDeletions(tx, deletions);
      });
      await pause(STEP_MS);
    }
  };
  const names = [...parts.parts].map(parsePart);
  const entries = names.filter(({ type, name }) => type === 'entries' && !parts.hasFacet(name));
  const deletionsIn = ({ id, facet }: ListRow): Deletion[] => {
    const name = facetOfList(facet);
    if (name !== '' && parts.hasFacet(name)) {
      return [
        [DROP_ALL_ENTRIES, id],
        [DROP_LIST, id],
      ];
    }
    return entries.filter((part) => part.name === name).map(({ order }) => [DROP_ENTRIES, id, order]);
  };
  const hasLists = entries.length > 0 || names.some(({ type }) => type === 'facet');
  for (let after = 0; hasLists; ) {
    const lists = await store.reader.all<ListRow>(NEXT_LISTS, after);
    await run(lists.filter((list) => list.kind === kind).flatMap(deletionsIn));
    const last = lists.at(-1);
    if (!last || lists.length < ROWS) break;
    after = last.id;
  }
  for (const { type, name } of names) if (type === 'reference') await run([[DROP_REFERENCES, kind, name]]);
}

/** Runs deletions until the time is over. Returns those that are left. */
async function runDeletions(tx: Transaction, deletions: readonly Deletion[]): Promise<Deletion[]> {
  const end = performance.now() + STEP_MS;
  for (const [at, [statement, ...params]] of deletions.entries()) {
    while ((await tx.run(statement, ...params)) === ROWS) {
      if (performance.now() >= end) return deletions.slice(at);
    }
    if (performance.now() >= end) return deletions.slice(at + 1);
  }
  return [];
}
