import type { Reader, Row } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { facetScopeKey, scopeKey } from '../list-membership.ts';
import { padToPowerOfTwo } from './pad.ts';
import type { Collection } from './visible-range.ts';

/** A list of the listing index and how many members it has. */
export interface List extends Row {
  readonly id: number;
  readonly n: number;
}

interface ListRow extends List {
  readonly scope: string;
  readonly facet: string;
}

export interface Lists {
  /** Unfiltered: of a collection, and of each of its parts. */
  of(collection: Collection, facet: string): List | undefined;
  /** Of all that lies below a uid, for which facets are kept. */
  below(uid: string, facet: string): List | undefined;
  /** Whether the collection is all that lies below its uid. */
  isAllBelow(collection: Collection): boolean;
}

const SCOPES_PER_STATEMENT = 64;

/** The lists that exist for these collections and facets. */
export async function findLists(
  db: Reader,
  resource: Resource,
  collections: readonly Collection[],
  facets: readonly string[],
): Promise<Lists> {
  const scopes = new Set(collections.flatMap(({ of, uid }) => [scopeKey(of, uid), facetScopeKey(uid)]));
  const wanted = padToPowerOfTwo([...new Set(['', ...facets])]);
  const found = new Map<string, List>();
  for (let at = 0; at < scopes.size; at += SCOPES_PER_STATEMENT) {
    const some = padToPowerOfTwo([...scopes].slice(at, at + SCOPES_PER_STATEMENT));
    const rows = await db.all<ListRow>(statement(wanted.length, some.length), resource.kind, ...wanted, ...some);
    for (const { scope, facet, id, n } of rows) found.set(`${scope} ${facet}`, { id, n });
  }
  const of: Lists['of'] = ({ of, uid }, facet) => found.get(`${scopeKey(of, uid)} ${facet}`);
  const below: Lists['below'] = (uid, facet) => found.get(`${facetScopeKey(uid)} ${facet}`);
  return { of, below, isAllBelow: (collection) => of(collection, '')?.n === below(collection.uid, '')?.n };
}

const statements = new Map<string, string>();

function statement(facets: number, scopes: number): string {
  const key = `${facets} ${scopes}`;
  const found = statements.get(key) ?? build(facets, scopes);
  statements.set(key, found);
  return found;
}

function build(facets: number, scopes: number): string {
  const slots = Array.from({ length: facets + scopes }, (_, i) => `$${i + 2}`);
  return `SELECT id, scope, facet, n FROM list
    WHERE kind = $1 AND facet IN (${slots.slice(0, facets).join(', ')}) AND scope IN (${slots.slice(facets).join(', ')})`;
}
