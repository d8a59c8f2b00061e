import type { MaybePromise } from '../../../base/maybe-promise.ts';
import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Row, Transaction } from '../../../store/store.ts';
import type { RegistryWrite } from '../tags/tag-targets.ts';
import { deleteManifest } from './manifests.ts';

/** Where a walk over a table stands; it can stop and go on later, on any server. */
export interface Cursor {
  readonly repo: string;
  readonly digest: string;
}

export interface Window {
  readonly after?: Cursor | undefined;
  /** What was pushed at this time or later is left alone: a push in flight may rely on it. */
  readonly before: number;
  /** How many rows to look at. */
  readonly limit: number;
}

export interface Batch<T> {
  readonly found: readonly T[];
  /** Where to go on; absent at the end. */
  readonly next: Cursor | undefined;
}

export interface UnreferencedLink extends Cursor {
  readonly size: number;
}

interface Candidate extends Row {
  readonly repo: string;
  readonly digest: string;
  readonly size: number;
  readonly is_garbage: number;
}

/** Whether no manifest of the repo needs `l`. */
const UNREFERENCED = 'NOT EXISTS (SELECT 1 FROM manifest_link n WHERE n.repo = l.repo AND n.target = l.digest)';
const WALK_LINKS = `SELECT l.repo, l.digest, l.size,
    CASE WHEN l.linked < $3 AND ${UNREFERENCED} THEN 1 ELSE 0 END AS is_garbage
  FROM blob_link l WHERE (l.repo, l.digest) > ($1, $2) ORDER BY l.repo, l.digest LIMIT $4`;
const HOLD_LINK = 'SELECT digest FROM blob_link WHERE repo = $1 AND digest = $2 AND linked < $3';
const UNLINK = `DELETE FROM blob_link AS l WHERE l.repo = $1 AND l.digest = $2 AND ${UNREFERENCED}`;

/** Whether nothing needs `m` any more: its subject is gone, no tag names it and no index holds it. */
const ORPHANED = `m.subject IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM manifest s WHERE s.repo = m.repo AND s.digest = m.subject)
  AND NOT EXISTS (SELECT 1 FROM manifest_link n WHERE n.repo = m.repo AND n.target = m.digest)
  AND NOT EXISTS (SELECT 1 FROM reference r WHERE r.kind = 'tag' AND r.field = 'digest' AND r.value = m.digest
    AND r.uid > m.repo AND r.uid < m.repo || '0')`;
const WALK_REFERRERS = `SELECT m.repo, m.digest, length(m.bytes) AS size,
    CASE WHEN m.pushed < $3 AND ${ORPHANED} THEN 1 ELSE 0 END AS is_garbage
  FROM manifest m WHERE (m.repo, m.digest) > ($1, $2) ORDER BY m.repo, m.digest LIMIT $4`;
const HOLD_REFERRER = 'SELECT digest FROM manifest WHERE repo = $1 AND digest = $2 AND pushed < $3';
const IS_ORPHAN = `SELECT digest FROM manifest m WHERE m.repo = $1 AND m.digest = $2 AND ${ORPHANED}`;

const LINKED = `SELECT DISTINCT digest FROM blob_link WHERE digest IN (${batchPlaceholders(1)})`;
const STILL_LINKED = `SELECT DISTINCT l.digest FROM blob_link l WHERE l.digest IN (${batchPlaceholders(2)})
  AND (l.linked >= $1 OR NOT ${UNREFERENCED})`;

/** Links to blobs that no manifest of their repo needs. */
export const unreferencedLinks = (db: Reader, window: Window): Promise<Batch<UnreferencedLink>> =>
  walk(db, WALK_LINKS, window);

/** Manifests about other manifests that are not there. */
export const orphanReferrers = (db: Reader, window: Window): Promise<Batch<Cursor>> => walk(db, WALK_REFERRERS, window);

async function walk(db: Reader, sql: string, { after, before, limit }: Window): Promise<Batch<UnreferencedLink>> {
  const rows = await db.all<Candidate>(sql, after?.repo ?? '', after?.digest ?? '', before, limit);
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    found: rows.filter((row) => row.is_garbage === 1).map(({ repo, digest, size }) => ({ repo, digest, size })),
    next: last && { repo: last.repo, digest: last.digest },
  };
}

/** Takes links away that nothing needs even now, and answers how many. */
export async function unlinkUnreferenced(tx: Transaction, links: readonly Cursor[], before: number): Promise<number> {
  let gone = 0;
  for (const { repo, digest } of links) {
    // Held first: a push that needs it has either committed what the next statement sees, or finds it gone.
    if (!(await tx.forUpdate.get(HOLD_LINK, repo, digest, before))) continue;
    gone += await tx.run(UNLINK, repo, digest);
  }
  return gone;
}

/** Deletes a manifest that nothing needs even now, and says whether it did. */
export async function deleteOrphan(write: RegistryWrite, { repo, digest }: Cursor, before: number): Promise<boolean> {
  const { db } = write;
  if (!(await db.forUpdate.get(HOLD_REFERRER, repo, digest, before))) return false;
  if (!(await db.get(IS_ORPHAN, repo, digest))) return false;
  return deleteManifest(write, repo, digest);
}

/** Those of `digests` that some repo links. The bytes of all others may go, once they are old enough. */
export const linkedDigests = (db: Reader, digests: readonly string[]): Promise<ReadonlySet<string>> =>
  among(digests, (some) => db.all(LINKED, ...some));

/** Those that will still be linked when links go which nothing needs and nobody touched since `before`. */
export const stillLinkedDigests = (
  db: Reader,
  digests: readonly string[],
  before: number,
): Promise<ReadonlySet<string>> => among(digests, (some) => db.all(STILL_LINKED, before, ...some));

async function among(
  digests: readonly string[],
  find: (some: readonly string[]) => MaybePromise<readonly { readonly digest: string }[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const some of parameterBatches(digests)) for (const { digest } of await find(some)) found.add(digest);
  return found;
}
