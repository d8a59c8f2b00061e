import type { Uid } from '../../base/uid.ts';
import type { Reader, Row } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { missingParts } from '../index/index-parts.ts';
import { facetKey, scopeKey } from '../list-membership.ts';
import { indexIncomplete } from './collection-plan.ts';
import { padToPowerOfTwo } from './pad-to-power-of-two.ts';

/** A value of a facet, and the number of resources that have it, summed over the scopes. */
export interface FacetValue {
  readonly value: string;
  readonly members: number;
}

export interface ValueWindow {
  /** The last value of the page before. */
  readonly after: string | undefined;
  readonly descending: boolean;
  readonly limit: number;
  readonly skip: number;
}

/** Reads the values of a facet. Each value is a list of the listing index. */
export interface FacetReader {
  /** Returns the values that descendants of the scopes have, in order. */
  values(scopes: readonly Uid[], window: ValueWindow): Promise<FacetValue[]>;
  /** Returns those of `values` that descendants of the scopes have. */
  find(scopes: readonly Uid[], values: readonly string[]): Promise<FacetValue[]>;
  /** Counts the values that descendants of the scopes have. */
  count(scopes: readonly Uid[]): Promise<number>;
  /** Returns the encoded messages of the resources with these values, by value. */
  members(scopes: readonly Uid[], values: readonly string[]): Promise<Map<string, Uint8Array[]>>;
}

interface ListRow extends Row {
  readonly facet: string;
  readonly n: number;
}
interface MemberRow extends Row {
  readonly facet: string;
  readonly body: Uint8Array;
}

/** For a facet whose values are listed themselves, such as the names of packages. */
export function createFacetReader(db: Reader, resource: Resource, field: string): FacetReader {
  const stored = resource.storedName(field);
  const missing = missingParts(resource, db.listingIndexes?.get(resource.kind));
  const prefix = facetKey(stored, '');
  // Sorts after every value: `>` follows `=` in ASCII.
  const end = `${stored}>`;
  const [sort = 'uid'] = resource.listOrders.facet;
  if (missing?.hasFacet(stored) || missing?.hasEntries(stored, sort)) throw indexIncomplete(resource, undefined);
  const scopeParams = (scopes: readonly Uid[]) => padToPowerOfTwo(scopes.map((uid) => scopeKey('descendants', uid)));
  const valueIn = (facet: string): string => facet.slice(prefix.length);

  return {
    async values(scopes, { after, descending, limit, skip }) {
      if (scopes.length === 0) return [];
      const keys = scopeParams(scopes);
      const [low, high] = descending
        ? [prefix, after === undefined ? end : prefix + after]
        : [after === undefined ? prefix : prefix + after, end];
      const text = pageText(keys.length, descending);
      const rows = await db.all<ListRow>(text, resource.kind, low, high, limit, skip, ...keys);
      return rows.map(({ facet, n }) => ({ value: valueIn(facet), members: n }));
    },

    async find(scopes, values) {
      if (scopes.length === 0 || values.length === 0) return [];
      const keys = scopeParams(scopes);
      const facets = padToPowerOfTwo(values.map((value) => facetKey(stored, value)));
      const text = findText(keys.length, facets.length);
      const rows = await db.all<ListRow>(text, resource.kind, ...keys, ...facets);
      return rows.map(({ facet, n }) => ({ value: valueIn(facet), members: n }));
    },

    async count(scopes) {
      if (scopes.length === 0) return 0;
      const keys = scopeParams(scopes);
      const row = await db.get<{ n: number }>(countText(keys.length), resource.kind, prefix, end, ...keys);
      return row?.n ?? 0;
    },

    async members(scopes, values) {
      const found = new Map<string, Uint8Array[]>(values.map((value) => [value, []]));
      if (scopes.length === 0 || values.length === 0) return found;
      const keys = scopeParams(scopes);
      const facets = padToPowerOfTwo(values.map((value) => facetKey(stored, value)));
      const rows = await db.all<MemberRow>(
        membersText(keys.length, facets.length),
        ...[resource.kind, sort, ...keys, ...facets],
      );
      for (const { facet, body } of rows) found.get(valueIn(facet))?.push(body);
      return found;
    },
  };
}

const texts = new Map<string, string>();

function cachedText(key: string, build: () => string): string {
  const text = texts.get(key) ?? build();
  texts.set(key, text);
  return text;
}

const placeholders = (from: number, count: number): string =>
  Array.from({ length: count }, (_, i) => `$${from + i}`).join(', ');

const pageText = (scopes: number, descending: boolean): string =>
  cachedText(`page ${scopes} ${descending}`, () => {
    const direction = descending ? 'DESC' : 'ASC';
    return `SELECT facet, CAST(sum(n) AS BIGINT) AS n FROM list
      WHERE kind = $1 AND facet > $2 AND facet < $3 AND n > 0 AND scope IN (${placeholders(6, scopes)})
      GROUP BY facet ORDER BY facet ${direction} LIMIT $4 OFFSET $5`;
  });

const findText = (scopes: number, facets: number): string =>
  cachedText(
    `find ${scopes} ${facets}`,
    () => `SELECT facet, CAST(sum(n) AS BIGINT) AS n FROM list
      WHERE kind = $1 AND n > 0
        AND scope IN (${placeholders(2, scopes)}) AND facet IN (${placeholders(2 + scopes, facets)})
      GROUP BY facet`,
  );

const countText = (scopes: number): string =>
  cachedText(
    `count ${scopes}`,
    () => `SELECT count(DISTINCT facet) AS n FROM list
      WHERE kind = $1 AND facet > $2 AND facet < $3 AND n > 0 AND scope IN (${placeholders(4, scopes)})`,
  );

const membersText = (scopes: number, facets: number): string =>
  cachedText(
    `members ${scopes} ${facets}`,
    () => `SELECT l.facet AS facet, r.body AS body
      FROM list l JOIN entry e ON e.list = l.id AND e.sort = $2 JOIN resource r ON r.kind = l.kind AND r.uid = e.uid
      WHERE l.kind = $1
        AND l.scope IN (${placeholders(3, scopes)}) AND l.facet IN (${placeholders(3 + scopes, facets)})`,
  );
