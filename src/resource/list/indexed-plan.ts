import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { type AccessPath, countPath, pagePath, sourcesOf } from './access-path.ts';
import { countFromIndex } from './counts.ts';
import { findLists } from './index-lists.ts';
import { facetsOf, indexQuery } from './index-query.ts';
import { limitToHeads } from './merge-heads.ts';
import { type Order, UNORDERED } from './order.ts';
import { type CountedTotal, type Cursor, fingerprint } from './page-token.ts';
import { comparePageRows, type PageRow, type Plan, type Selection } from './plan.ts';
import { fromCursor, inRounds, isLoop } from './source.ts';
import { countStatement, pageStatement, type Shape, sourceValues } from './sql.ts';
import type { Collection, CollectionRange } from './visible-range.ts';

/** Rows that each source may bring to be sorted with those of the others. */
const MAX_SORTED = 500;

/** Lists collections by their listing index: a seek per collection, whatever its size. */
export async function indexedPlan(
  db: Reader,
  resource: Resource,
  { collections, except }: CollectionRange,
  selection: Selection,
  order: Order,
  earlier?: CountedTotal,
): Promise<Plan> {
  const reading = indexQuery(resource, selection);
  const { equals, since, facets, references, whole } = reading;
  const lists = await findLists(db, resource, collections, [...whole, ...facets.flatMap(facetsOf)]);
  const census = countFromIndex(reading, { collections, except }, lists);
  const survey = { resource, reading, lists, census };

  function shapesOf(way: AccessPath, by: Order, cursor: Cursor | undefined, window: number): Shape[] {
    const foundBy = 'filter' in way ? way.filter : undefined;
    const sort = 'sort' in way ? way.sort : 'uid';
    const referring = references.filter((filter) => filter !== foundBy);
    const overlapping = foundBy !== undefined && foundBy.values.length > 1;
    const sourcesIn = (collection: Collection) =>
      sourcesOf(way, survey, collection).map((source) => fromCursor(source, by, cursor));
    const found = collections.map(sourcesIn);
    const loopOver = overlapping || !isLoop(found.flat(), sort, by) ? undefined : db.jsonElements;
    const rounds = loopOver === undefined ? inRounds(found) : [found.flat()];
    const bodies = db.rowCache === undefined;
    const common = {
      except,
      sort,
      order: by,
      afterCursor: cursor !== undefined,
      equals,
      since,
      referring,
      loopOver,
      overlapping,
      bodies,
      bytewise: db.binaryCollation,
    };
    return rounds.map((sources) => ({ sources, sorts: sources.length > 4 && window <= MAX_SORTED, ...common }));
  }

  async function count(): Promise<number> {
    let total = 0;
    for (const shape of shapesOf(countPath(survey), UNORDERED, undefined, Infinity)) {
      const { text, bind } = countStatement(shape);
      const row = await db.get<{ n: number }>(text, ...bind({ kind: resource.kind, ...sourceValues(shape) }));
      total += row?.n ?? 0;
    }
    return total;
  }
  const takeTally = async (): Promise<CountedTotal> => {
    const places = fingerprint([...collections.map(({ of, uid }) => `${of} ${uid}`), except].join());
    return earlier?.collections === places ? earlier : { collections: places, total: await count() };
  };
  let taking: Promise<CountedTotal> | undefined;
  const tally = (): Promise<CountedTotal> => {
    taking ??= takeTally();
    return taking;
  };
  const total = (): MaybePromise<number> => census.total ?? tally().then((taken) => taken.total);

  return {
    total,
    countedTotal: () => (census.total === undefined ? tally() : undefined),

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
    const wanted = limit + skip;
    const way = pagePath(survey, order.terms[0]?.field ?? 'uid', matching, wanted);
    const keys = cursor?.keys.map((key, i) => [`cursor${i}`, key] as const) ?? [];
    const common = { kind: resource.kind, ...Object.fromEntries(keys), cursor_uid: cursor?.uid ?? null };
    const shapes = await limitToHeads(db, shapesOf(way, by, cursor, wanted), common, wanted);

    // Rounds are merged afterwards, so each must bring what the merge may skip.
    const alone = shapes.length <= 1;
    const window = alone ? { limit, skip, inner: wanted } : { limit: wanted, skip: 0, inner: wanted };
    const found: PageRow[] = [];
    for (const shape of shapes) {
      const { text, bind } = pageStatement(shape);
      const enough = wanted * shape.sources.length;
      const values = { ...common, enough, ...window, ...sourceValues(shape) };
      found.push(...(await db.all<PageRow>(text, ...bind(values))));
    }
    return alone ? found : found.sort(comparePageRows(by)).slice(skip, skip + limit);
  }
}

const reversed = ({ terms, uidDescending }: Order): Order => ({
  terms: terms.map(({ field, descending }) => ({ field, descending: !descending })),
  uidDescending: !uidDescending,
});
