import type { Reader, Row } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { facetScopeKey, scopeKey, WHOLE_LIST } from '../list-membership.ts';
import { padToPowerOfTwo } from './pad-to-power-of-two.ts';
import type { Collection } from './visible-range.ts';

/** A list of the listing index, with its size. */
export interface IndexList extends Row {
  readonly id: number;
  readonly n: number;
}

interface ListRow extends IndexList {
  readonly scope: string;
  readonly facet: string;
}

/** The lists that exist for some collections and facets. */
export interface IndexLists {
  /** Finds the unfiltered list of a collection (facet `''`), or that of one of its partitions. */
  listOf(collection: Collection, facet: string): IndexList | undefined;
  /** Finds the list of a facet value. It has the descendants of a uid: the children have no such list. */
  facetListOf(uid: string, facet: string): IndexList | undefined;
  /** Whether the collection has all descendants of its uid. That can be so for children, too. */
  hasAllDescendants(collection: Collection): boolean;
}

const SCOPES_PER_STATEMENT = 64;

export async function findIndexLists(
  db: Reader,
  resource: Resource,
  collections: readonly Collection[],
  facets: readonly string[],
): Promise<IndexLists> {
  const scopes = new Set(collections.flatMap(({ of, uid }) => [scopeKey(of, uid), facetScopeKey(uid)]));
  const facetParams = padToPowerOfTwo([...new Set([WHOLE_LIST, ...facets])]);
  const found = new Map<string, IndexList>();
  for (let at = 0; at < scopes.size; at += SCOPES_PER_STATEMENT) {
    const scopeParams = padToPowerOfTwo([...scopes].slice(at, at + SCOPES_PER_STATEMENT));
    const text = statementFor(facetParams.length, scopeParams.length);
    const rows = await db.all<ListRow>(text, resource.kind, ...facetParams, ...scopeParams);
    for (const { scope, facet, id, n } of rows) found.set(`${scope} ${facet}`, { id, n });
  }
  const listOf: IndexLists['listOf'] = ({ of, uid }, facet) => found.get(`${scopeKey(of, uid)} ${facet}`);
  const facetListOf: IndexLists['facetListOf'] = (uid, facet) => found.get(`${facetScopeKey(uid)} ${facet}`);
  return {
    listOf,
    facetListOf,
    hasAllDescendants: (collection) => listOf(collection, WHOLE_LIST)?.n === facetListOf(collection.uid, WHOLE_LIST)?.n,
  };
}

const statements = new Map<string, string>();

function statementFor(facets: number, scopes: number): string {
  const key = `${facets} ${scopes}`;
  const text = statements.get(key) ?? buildStatement(facets, scopes);
  statements.set(key, text);
  return text;
}

function buildStatement(facets: number, scopes: number): string {
  const placeholders = Array.from({ length: facets + scopes }, (_, i) => `$${i + 2}`);
  return `SELECT id, scope, facet, n FROM list WHERE kind = $1
    AND facet IN (${placeholders.slice(0, facets).join(', ')}) AND scope IN (${placeholders.slice(facets).join(', ')})`;
}
