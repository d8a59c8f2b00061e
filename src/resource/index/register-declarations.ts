import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import {
  findListingIndex,
  findListingIndexes,
  type IndexPhase,
  type ListingIndex,
} from '../../store/listing-indexes.ts';
import type { Reader, Store, Transaction } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { putProgress } from './build-progress.ts';
import { partsOf } from './index-parts.ts';
import { watchOtherServers } from './other-servers.ts';

const COUNT = 'SELECT count(*) AS n FROM resource WHERE kind = $1';
const PUT = `INSERT INTO listing_index (kind, parts, building, dropping, generation, phase)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (kind) DO UPDATE SET parts = excluded.parts, building = excluded.building, dropping = excluded.dropping,
    generation = excluded.generation, phase = excluded.phase`;

/** Identifies what all declarations make of resources in the tables. Two servers with the same one can share a database. */
export const declarationsId = (resources: readonly Resource[]): string =>
  hash(
    'sha256',
    JSON.stringify(resources.map((resource) => [resource.kind, [...partsOf(resource)].sort()]).sort()),
  ).slice(0, 12);

/** A change of the listing index of a kind that a new declaration requires. */
export interface DeclarationChange {
  readonly kind: string;
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Compares the declarations with the listing indexes of the database, and records what must be built and dropped. Costs one
 * read if nothing has changed. Returns the changes.
 */
export async function registerDeclarations(
  store: Store,
  resources: readonly Resource[],
  clock: Clock,
): Promise<DeclarationChange[]> {
  const indexes = await findListingIndexes(store.reader);
  const differing = resources.filter((resource) => !isRegistered(resource, indexes.get(resource.kind)));
  if (differing.length === 0) return [];
  const changes = await store.write(async (tx) => {
    const registered: DeclarationChange[] = [];
    for (const resource of differing.toSorted((a, b) => (a.kind < b.kind ? -1 : 1))) {
      const change = await register(tx, resource, clock());
      if (change) registered.push(change);
    }
    if (registered.length > 0) await watchOtherServers(tx, declarationsId(resources));
    return registered;
  });
  await store.reader.listingIndexes?.refresh();
  return changes;
}

/** Whether the database has the parts of a declaration, or is building them. */
function isRegistered(resource: Resource, index: ListingIndex | undefined): boolean {
  if (!index) return false;
  const declared = partsOf(resource);
  const known = index.parts.union(index.building);
  return known.size === declared.length && declared.every((part) => known.has(part));
}

async function register(tx: Transaction, resource: Resource, now: number): Promise<DeclarationChange | undefined> {
  const { kind } = resource;
  const index = await findListingIndex(tx.forUpdate, kind);
  if (isRegistered(resource, index)) return undefined;
  const declared = new Set(partsOf(resource));
  if (!index) {
    await putListingIndex(tx, { ...COMPLETE, kind, parts: declared, generation: 0 });
    return undefined;
  }
  // Parts that were not complete are built again from the start.
  const added = declared.difference(index.parts);
  const removed = index.parts.union(index.building).union(index.dropping).difference(declared);
  const generation = index.generation + 1;
  const total = await countResources(tx, kind);
  const isBuilt = added.size === 0;
  await putListingIndex(tx, {
    kind,
    parts: isBuilt ? declared : declared.difference(added),
    building: isBuilt ? new Set() : added,
    dropping: removed,
    generation,
    phase: isBuilt ? 'complete' : 'waiting',
  });
  await putProgress(tx, {
    ...{ kind, generation, cursor: '', pass: 0, found: 0, done: 0, total },
    ...{ started: now, updated: now },
  });
  return { kind, added: [...added], removed: [...index.parts.difference(declared)] };
}

const COMPLETE = { building: new Set<string>(), dropping: new Set<string>(), phase: 'complete' as IndexPhase };

export async function putListingIndex(tx: Transaction, index: ListingIndex): Promise<void> {
  const { kind, parts, building, dropping, generation, phase } = index;
  const json = (names: ReadonlySet<string>): string => JSON.stringify([...names].sort());
  await tx.run(PUT, kind, json(parts), json(building), json(dropping), generation, phase);
}

export async function countResources(db: Reader, kind: string): Promise<number> {
  return Number((await db.get<{ n: number }>(COUNT, kind))?.n ?? 0);
}
