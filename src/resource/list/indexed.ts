import { ROOT, rangeBelow } from '../../base/uid.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import type { Collection } from './extent.ts';
import { findLists } from './lists.ts';
import type { Order } from './order.ts';
import { comparePageRows, type PageRow, type Plan, type Selection } from './plan.ts';
import { readingOf } from './reading.ts';
import type { Source } from './source.ts';
import { countStatement, pageStatement, type Shape, sourceValues } from './sql.ts';

/** SQLite takes at most 500 terms in a compound SELECT; callers with more scopes are served in several rounds. */
const SOURCES_PER_STATEMENT = 100;

const UNORDERED: Order = { terms: [], uidDescending: false };

/** Lists collections by their listing index: a seek per collection, whatever its size. */
export async function indexedPlan(
  db: Reader,
  resource: Resource,
  collections: readonly Collection[],
  selection: Selection,
  order: Order,
): Promise<Plan> {
  const { since } = selection;
  const { equals, references, driving, overlapping, residual, isWhole } = readingOf(resource, selection);
  const [reference, ...referring] = references;
  const lists = await findLists(db, resource, collections, ['', ...driving, ...residual.flat()]);

  function sourcesOf(collection: Collection, byPrimaryKey: boolean): Source[] {
    if (!lists.of(collection, '')?.n) return [];
    const within = residual.map((group) => group.flatMap((facet) => lists.of(collection, facet)?.id ?? []));
    if (within.some((group) => group.length === 0)) return [];
    if (reference) return reference.values.map((value) => byReference(collection, reference.field, value, within));
    if (byPrimaryKey) return [inUidOrder(collection)];
    const without = collection.withoutSelf ? collection.uid : undefined;
    return driving.flatMap((facet): Source[] => {
      const list = lists.of(collection, facet);
      return list?.n ? [{ from: 'list', list: list.id, without, within }] : [];
    });
  }

  /** Rows of the driving lists. A scope stands first in its own list of descendants, of which it is no member. */
  const members = collections.reduce((sum, collection) => {
    const counted = isWhole ? [''] : driving;
    const n = counted.reduce((n, facet) => n + (lists.of(collection, facet)?.n ?? 0), 0);
    return sum + (n > 0 && isWhole && collection.withoutSelf ? n - 1 : n);
  }, 0);
  const isCounted =
    equals.length === 0 &&
    !since &&
    !reference &&
    !overlapping &&
    residual.length === 0 &&
    (isWhole || !collections.some(({ withoutSelf }) => withoutSelf));

  function shapesOf(sort: string, by: Order, byPrimaryKey: boolean, afterCursor: boolean): Shape[] {
    const rounds: Source[][] = [];
    for (const collection of collections) {
      const sources = sourcesOf(collection, byPrimaryKey);
      const last = rounds.at(-1);
      // Those of one collection stay together: a row may stand in several of them, and must be seen once.
      if (last && last.length + sources.length <= SOURCES_PER_STATEMENT) last.push(...sources);
      else if (sources.length > 0) rounds.push(sources);
    }
    const common = { sort, order: by, afterCursor, equals, since, referring, overlapping, bytewise: db.bytewise };
    return rounds.map((sources) => ({ sources, ...common }));
  }

  async function count(): Promise<number> {
    let total = 0;
    for (const shape of shapesOf(equals[0]?.field ?? since?.field ?? 'uid', UNORDERED, false, false)) {
      const { text, bind } = countStatement(shape);
      const row = await db.get<{ n: number }>(text, ...bind({ kind: resource.kind, ...sourceValues(shape) }));
      total += row?.n ?? 0;
    }
    return total;
  }
  let counting: Promise<number> | undefined;
  const total = (): Promise<number> => {
    counting ??= isCounted ? Promise.resolve(members) : count();
    return counting;
  };

  const compare = comparePageRows(
    order.terms.map((term) => term.descending),
    order.uidDescending,
  );

  return {
    total,

    async page({ cursor, limit, skip }) {
      const inOrder = order.terms[0]?.field ?? 'uid';
      const seeksTime =
        since !== undefined && equals.length === 0 && isSparse(await total(), members, limit + skip)
          ? since.field
          : undefined;
      const byPrimaryKey = isWhole && inOrder === 'uid' && equals.length === 0 && seeksTime === undefined;
      const chunks = shapesOf(equals[0]?.field ?? seeksTime ?? inOrder, order, byPrimaryKey, cursor !== undefined);

      // Rounds are merged afterwards, so each must bring what the merge may skip.
      const alone = chunks.length <= 1;
      const window = alone
        ? { limit, skip, inner: limit + skip }
        : { limit: limit + skip, skip: 0, inner: limit + skip };
      const at = cursor && Object.fromEntries(cursor.keys.map((key, i) => [`cursor${i}`, key]));
      const found: PageRow[] = [];
      for (const shape of chunks) {
        const { text, bind } = pageStatement(shape);
        const values = { kind: resource.kind, ...window, ...at, cursor_uid: cursor?.uid ?? null };
        found.push(...(await db.all<PageRow>(text, ...bind({ ...values, ...sourceValues(shape) }))));
      }
      return alone ? found : found.sort(compare).slice(skip, skip + limit);
    },
  };
}

/**
 * Whether it is cheaper to read and sort all that matches than to look through the list in its order for a page of it:
 * of `members` rows that are spread evenly, `members / matching` must be read for each one wanted.
 */
const isSparse = (matching: number, members: number, wanted: number): boolean => matching * matching < members * wanted;

const inUidOrder = ({ of, uid, withoutSelf }: Collection): Source => {
  const [low, high] = rangeBelow(uid);
  return of === 'children' ? { from: 'parent', parent: uid } : { from: 'range', low, high, withLow: !withoutSelf };
};

function byReference(
  { of, uid, withoutSelf }: Collection,
  field: string,
  value: string,
  within: readonly (readonly number[])[],
): Source {
  // Uids begin with hexadecimal digits.
  const [low, high] = uid === ROOT ? ['', 'g'] : rangeBelow(uid);
  const parent = of === 'children' ? uid : undefined;
  return { from: 'reference', field, value, low, high, withLow: !withoutSelf, parent, within };
}
