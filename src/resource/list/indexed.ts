import type { Reader, Row } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { facetKey, scopeKey } from '../membership.ts';
import type { Collection } from './extent.ts';
import type { Order } from './order.ts';
import { comparePageRows, type Filter, type PageRow, type Plan } from './plan.ts';
import { countStatement, pageStatement, type Shape, type Source, sourceValues } from './sql.ts';

/** SQLite takes at most 500 terms in a compound SELECT; callers with more scopes are served in several rounds. */
const SOURCES_PER_STATEMENT = 100;

/** Lists collections by their listing index: a seek per collection, whatever its size. */
export async function indexedPlan(
  db: Reader,
  resource: Resource,
  collections: readonly Collection[],
  filters: readonly Filter[],
  order: Order,
): Promise<Plan> {
  const facetFilters = filters.filter(({ field }) => !(field in resource.sortKeys));
  const equalFilter = filters.find(({ field }) => field in resource.sortKeys);
  const equal = equalFilter && { field: equalFilter.field, value: equalFilter.values[0] ?? '' };
  // The equality filter drives when there is one, else the first facet, else the collection as it is.
  const driving = equal ? undefined : facetFilters[0];
  const residual = facetFilters.filter((filter) => filter !== driving);

  const lists = await findLists(db, resource, collections, filters);
  const drivingFacets = driving ? driving.values.map((value) => facetKey(driving.field, value)) : [''];
  const byUid = order.terms.length === 0 && !equal && !driving;

  const sources: Source[] = [];
  let members = 0;
  for (const collection of collections) {
    const listOf = (facet: string) => lists.get(`${scopeKey(collection.of, collection.uid)} ${facet}`);
    const within = residual.map(({ field, values }) =>
      values.flatMap((value) => listOf(facetKey(field, value))?.id ?? []),
    );
    if (within.some((group) => group.length === 0)) continue;
    for (const facet of drivingFacets) {
      const list = listOf(facet);
      if (!list || list.n === 0) continue;
      // A scope stands first in its own list of descendants.
      members += list.n - (collection.withoutSelf ? 1 : 0);
      const without = collection.withoutSelf ? collection.uid : undefined;
      sources.push(byUid ? inUidOrder(collection) : { from: 'list', list: list.id, without, within });
    }
  }

  const overlapping = drivingFacets.length > 1;
  const chunks: Shape[] = [];
  for (let at = 0; at < sources.length; at += SOURCES_PER_STATEMENT) {
    const chunk = sources.slice(at, at + SOURCES_PER_STATEMENT);
    chunks.push({ sources: chunk, order, afterCursor: false, equal, overlapping, bytewise: db.bytewise });
  }
  const compare = comparePageRows(
    order.terms.map((term) => term.descending),
    order.uidDescending,
  );

  return {
    async total() {
      if (!equal && !overlapping && residual.length === 0) return members;
      let total = 0;
      for (const shape of chunks) {
        const { text, bind } = countStatement(shape);
        const row = await db.get<{ n: number }>(text, ...bind({ kind: resource.kind, ...sourceValues(shape) }));
        total += row?.n ?? 0;
      }
      return total;
    },

    async page({ cursor, limit, skip }) {
      // Rounds are merged afterwards, so each must bring what the merge may skip.
      const alone = chunks.length <= 1;
      const window = alone
        ? { limit, skip, inner: limit + skip }
        : { limit: limit + skip, skip: 0, inner: limit + skip };
      const at = cursor && Object.fromEntries(cursor.keys.map((key, i) => [`cursor${i}`, key]));
      const found: PageRow[] = [];
      for (const chunk of chunks) {
        const shape = { ...chunk, afterCursor: cursor !== undefined };
        const { text, bind } = pageStatement(shape);
        const values = { kind: resource.kind, ...window, ...at, cursor_uid: cursor?.uid ?? null };
        found.push(...(await db.all<PageRow>(text, ...bind({ ...values, ...sourceValues(shape) }))));
      }
      return alone ? found : found.sort(compare).slice(skip, skip + limit);
    },
  };
}

/** `0` follows `/` in ASCII, so this is everything that begins with `<uid>/`. */
const endOf = (uid: string): string => `${uid}0`;

const inUidOrder = ({ of, uid, withoutSelf }: Collection): Source =>
  of === 'children'
    ? { from: 'parent', parent: uid }
    : { from: 'range', low: uid, high: endOf(uid), withLow: !withoutSelf };

interface List extends Row {
  readonly id: number;
  readonly scope: string;
  readonly facet: string;
  readonly n: number;
}

/** The lists that exist for these collections, by `<scope> <facet>`. */
async function findLists(
  db: Reader,
  resource: Resource,
  collections: readonly Collection[],
  filters: readonly Filter[],
): Promise<ReadonlyMap<string, List>> {
  const scopes = collections.map(({ of, uid }) => scopeKey(of, uid));
  const facets = filters.flatMap(({ field, values }) =>
    field in resource.sortKeys ? [] : values.map((value) => facetKey(field, value)),
  );
  const found = new Map<string, List>();
  for (const facet of ['', ...facets]) {
    for (let at = 0; at < scopes.length; at += SOURCES_PER_STATEMENT) {
      const some = scopes.slice(at, at + SOURCES_PER_STATEMENT);
      const rows = await db.all<List>(listsStatement(some.length), resource.kind, facet, ...some);
      for (const row of rows) found.set(`${row.scope} ${row.facet}`, row);
    }
  }
  return found;
}

const listsStatements: string[] = [];

function listsStatement(count: number): string {
  listsStatements[count] ??=
    `SELECT id, scope, facet, n FROM list WHERE kind = $1 AND facet = $2 AND scope IN (${Array.from(
      { length: count },
      (_, i) => `$${i + 3}`,
    ).join(', ')})`;
  return listsStatements[count];
}
