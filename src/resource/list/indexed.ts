import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { takeCensus } from './census.ts';
import type { Collection } from './extent.ts';
import { findLists } from './lists.ts';
import type { Order } from './order.ts';
import type { Cursor } from './page-token.ts';
import { comparePageRows, type PageRow, type Plan, type Selection } from './plan.ts';
import { facetsOf, readingOf } from './reading.ts';
import type { Source } from './source.ts';
import { countStatement, pageStatement, type Shape, sourceValues } from './sql.ts';
import { sourcesOf, type Way } from './way.ts';

/** SQLite takes at most 500 terms in a compound SELECT; callers with more scopes are served in several rounds. */
const SOURCES_PER_ROUND = 100;

/** Rows that each source may bring to be sorted with those of the others. */
const MAX_SORTED = 500;

const UNORDERED: Order = { terms: [], uidDescending: false };

/** Lists collections by their listing index: a seek per collection, whatever its size. */
export async function indexedPlan(
  db: Reader,
  resource: Resource,
  collections: readonly Collection[],
  selection: Selection,
  order: Order,
): Promise<Plan> {
  const reading = readingOf(resource, selection);
  const { equals, since, facets, references, parts, whole } = reading;
  const lists = await findLists(db, resource, collections, [...whole, ...facets.flatMap(facetsOf)]);
  const { members, narrowest, total: known } = takeCensus(reading, collections, lists);
  const [key] = equals;
  const reference = references.find(({ lacks }) => !lacks);
  const [probing = 'uid'] = resource.listOrders.facet;
  const inUidOrder: Way = parts ? { by: 'whole', sort: 'uid' } : { by: 'primary key' };

  /** How to count what is selected: order does not matter, only how many rows must be looked at. */
  function wayToCount(): Way {
    if (key) return { by: 'whole', sort: key.field };
    if (reference) return { by: 'reference', filter: reference };
    if (narrowest) return { by: 'facet', sort: probing, filter: narrowest.filter };
    return since ? { by: 'whole', sort: since.field } : inUidOrder;
  }

  /** How to read a page of `wanted` rows of the `matching` ones. */
  function wayToPage(matching: number, wanted: number): Way {
    const sort = order.terms[0]?.field ?? 'uid';
    // Whether it is cheaper to read and sort so many rows than to look through all in their order for the matching ones.
    // If these are spread evenly, there is one in every `members / matching`.
    const isSparse = (rows: number): boolean => rows * matching < members * wanted;
    if (key) return { by: 'whole', sort: key.field };
    if (reference) return { by: 'reference', filter: reference };
    const isKept = sort === 'uid' || resource.listOrders.whole.includes(sort);
    if (narrowest) {
      const { filter, rows } = narrowest;
      if (resource.listOrders.facet.includes(sort)) return { by: 'facet', sort, filter };
      if (isSparse(rows) || !isKept) return { by: 'facet', sort: probing, filter };
    } else if (since && isSparse(matching)) {
      return { by: 'whole', sort: since.field };
    }
    return sort === 'uid' || !isKept ? inUidOrder : { by: 'whole', sort };
  }

  function shapesOf(way: Way, by: Order, afterCursor: boolean, window: number): Shape[] {
    const found = 'filter' in way ? way.filter : undefined;
    const sort = 'sort' in way ? way.sort : 'uid';
    const referring = references.filter((filter) => filter !== found);
    const overlapping = found !== undefined && found.values.length > 1;
    const survey = { resource, reading, lists };
    const rounds = inRounds(collections.map((collection) => sourcesOf(way, survey, collection)));
    const common = { sort, order: by, afterCursor, equals, since, referring, overlapping, bytewise: db.bytewise };
    return rounds.map((sources) => ({ sources, sorts: sources.length > 4 && window <= MAX_SORTED, ...common }));
  }

  async function count(): Promise<number> {
    let total = 0;
    for (const shape of shapesOf(wayToCount(), UNORDERED, false, Infinity)) {
      const { text, bind } = countStatement(shape);
      const row = await db.get<{ n: number }>(text, ...bind({ kind: resource.kind, ...sourceValues(shape) }));
      total += row?.n ?? 0;
    }
    return total;
  }
  let counting: Promise<number> | undefined;
  const total = (): Promise<number> => {
    counting ??= known === undefined ? count() : Promise.resolve(known);
    return counting;
  };

  return {
    total,

    async page({ cursor, limit, skip }) {
      const matching = await total();
      if (matching === 0) return [];
      // Rows are skipped one by one, so a far page is read from the end, backwards.
      const behind = matching - skip;
      if (cursor === undefined && behind < skip) {
        const wanted = Math.min(limit, behind);
        if (wanted <= 0) return [];
        return (await read(reversed(order), undefined, wanted, behind - wanted, matching)).reverse();
      }
      return read(order, cursor, limit, skip, matching);
    },
  };

  async function read(
    by: Order,
    cursor: Cursor | undefined,
    limit: number,
    skip: number,
    matching: number,
  ): Promise<PageRow[]> {
    const shapes = shapesOf(wayToPage(matching, limit + skip), by, cursor !== undefined, limit + skip);

    // Rounds are merged afterwards, so each must bring what the merge may skip.
    const alone = shapes.length <= 1;
    const window = alone ? { limit, skip, inner: limit + skip } : { limit: limit + skip, skip: 0, inner: limit + skip };
    const at = cursor && Object.fromEntries(cursor.keys.map((key, i) => [`cursor${i}`, key]));
    const found: PageRow[] = [];
    for (const shape of shapes) {
      const { text, bind } = pageStatement(shape);
      const enough = window.inner * shape.sources.length;
      const values = { kind: resource.kind, enough, ...window, ...at, cursor_uid: cursor?.uid ?? null };
      found.push(...(await db.all<PageRow>(text, ...bind({ ...values, ...sourceValues(shape) }))));
    }
    return alone ? found : found.sort(comparing(by)).slice(skip, skip + limit);
  }
}

const comparing = ({ terms, uidDescending }: Order) =>
  comparePageRows(
    terms.map((term) => term.descending),
    uidDescending,
  );

const reversed = ({ terms, uidDescending }: Order): Order => ({
  terms: terms.map(({ field, descending }) => ({ field, descending: !descending })),
  uidDescending: !uidDescending,
});

/** What is read for one collection stays together, because only there a row may stand in several sources. */
function inRounds(groups: readonly (readonly Source[])[]): Source[][] {
  const rounds: Source[][] = [];
  for (const group of groups) {
    const last = rounds.at(-1);
    if (last && last.length + group.length <= SOURCES_PER_ROUND) last.push(...group);
    else if (group.length > 0) rounds.push([...group]);
  }
  return rounds;
}
