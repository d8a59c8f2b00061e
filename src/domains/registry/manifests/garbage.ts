import type { MaybePromise } from '../../../base/maybe-promise.ts';
import type { Uid } from '../../../base/uid.ts';
import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Row, Transaction } from '../../../store/store.ts';
import { uncountBlob } from '../storage/organization-storage.ts';
import type { RegistryWrite } from '../tags/tag-targets.ts';
import { deleteManifest } from './manifests.ts';

/** The key of a manifest or a blob link. It is also the cursor of a scan, which any server can continue. */
export interface RepoDigest {
  readonly repo: string;
  readonly digest: string;
}

/** The part of a table that one step of a scan reads. */
export interface GarbageScan {
  readonly after?: RepoDigest | undefined;
  /** Rows that were pushed at this time or later are no garbage, because a push in progress may need them. */
  readonly before: number;
  /** How many rows to read. */
  readonly limit: number;
}

export interface GarbageBatch<T> {
  readonly found: readonly T[];
  /** The cursor of the next step; undefined at the end of the table. */
  readonly next: RepoDigest | undefined;
}

export interface UnreferencedLink extends RepoDigest {
  readonly size: number;
}

interface Candidate extends Row {
  readonly repo: Uid;
  readonly digest: string;
  readonly size: number;
  readonly is_garbage: number;
}

/** Whether no manifest of the repo refers to the blob of `l`. */
const UNREFERENCED = 'NOT EXISTS (SELECT 1 FROM manifest_link n WHERE n.repo = l.repo AND n.target = l.digest)';
const SCAN_LINKS = `SELECT l.repo, l.digest, l.size,
    CASE WHEN l.linked < $3 AND ${UNREFERENCED} THEN 1 ELSE 0 END AS is_garbage
  FROM blob_link l WHERE (l.repo, l.digest) > ($1, $2) ORDER BY l.repo, l.digest LIMIT $4`;
const LOCK_LINK = 'SELECT digest FROM blob_link WHERE repo = $1 AND digest = $2 AND linked < $3';
const UNLINK = `DELETE FROM blob_link AS l WHERE l.repo = $1 AND l.digest = $2 AND ${UNREFERENCED} RETURNING size`;

/** Whether `m` is an orphan: its subject does not exist, no tag points to it and no index contains it. */
const ORPHANED = `m.subject IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM manifest s WHERE s.repo = m.repo AND s.digest = m.subject)
  AND NOT EXISTS (SELECT 1 FROM manifest_link n WHERE n.repo = m.repo AND n.target = m.digest)
  AND NOT EXISTS (SELECT 1 FROM reference r WHERE r.kind = 'tag' AND r.field = 'digest' AND r.value = m.digest
    AND r.uid > m.repo AND r.uid < m.repo || '0')`;
const SCAN_REFERRERS = `SELECT m.repo, m.digest, length(m.bytes) AS size,
    CASE WHEN m.pushed < $3 AND ${ORPHANED} THEN 1 ELSE 0 END AS is_garbage
  FROM manifest m WHERE (m.repo, m.digest) > ($1, $2) ORDER BY m.repo, m.digest LIMIT $4`;
const LOCK_REFERRER = 'SELECT digest FROM manifest WHERE repo = $1 AND digest = $2 AND pushed < $3';
const IS_ORPHAN = `SELECT digest FROM manifest m WHERE m.repo = $1 AND m.digest = $2 AND ${ORPHANED}`;

const LINKED = `SELECT DISTINCT digest FROM blob_link WHERE digest IN (${batchPlaceholders(1)})`;
const STILL_LINKED = `SELECT DISTINCT l.digest FROM blob_link l WHERE l.digest IN (${batchPlaceholders(2)})
  AND (l.linked >= $1 OR NOT ${UNREFERENCED})`;

/** Finds links to blobs that no manifest of the repo refers to. */
export const findUnreferencedLinks = (db: Reader, options: GarbageScan): Promise<GarbageBatch<UnreferencedLink>> =>
  scan(db, SCAN_LINKS, options);

/** Finds referrers, such as signatures, whose subject does not exist. */
export const findOrphanReferrers = (db: Reader, options: GarbageScan): Promise<GarbageBatch<RepoDigest>> =>
  scan(db, SCAN_REFERRERS, options);

async function scan(
  db: Reader,
  sql: string,
  { after, before, limit }: GarbageScan,
): Promise<GarbageBatch<UnreferencedLink>> {
  const rows = await db.all<Candidate>(sql, after?.repo ?? '', after?.digest ?? '', before, limit);
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    found: rows.filter((row) => row.is_garbage === 1).map(({ repo, digest, size }) => ({ repo, digest, size })),
    next: last && { repo: last.repo, digest: last.digest },
  };
}

/** Deletes those of `links` that are still unreferenced, and returns their number. */
export async function unlinkUnreferenced(
  tx: Transaction,
  links: readonly RepoDigest[],
  before: number,
): Promise<number> {
  let deleted = 0;
  for (const { repo, digest } of links) {
    // Locked first: a push that needs the link has committed, which the next statement sees, or finds the link deleted.
    if (!(await tx.forUpdate.get(LOCK_LINK, repo, digest, before))) continue;
    const [link] = await tx.runReturning<{ size: number }>(UNLINK, repo, digest);
    if (!link) continue;
    await uncountBlob(tx, repo, digest, link.size);
    deleted++;
  }
  return deleted;
}

/** Deletes a manifest if it is still an orphan. Returns whether it did. */
export async function deleteOrphan(
  write: RegistryWrite,
  { repo, digest }: RepoDigest,
  before: number,
): Promise<boolean> {
  const { db } = write;
  if (!(await db.forUpdate.get(LOCK_REFERRER, repo, digest, before))) return false;
  if (!(await db.get(IS_ORPHAN, repo, digest))) return false;
  return deleteManifest(write, repo, digest);
}

/** Those of `digests` that a repo links. The files of all others can be deleted once they are old enough. */
export const findLinkedDigests = (db: Reader, digests: readonly string[]): Promise<ReadonlySet<string>> =>
  collectDigests(digests, (some) => db.all(LINKED, ...some));

/** Those of `digests` that a repo still links after all unreferenced links from before `before` are deleted. */
export const findDigestsLinkedAfterGc = (
  db: Reader,
  digests: readonly string[],
  before: number,
): Promise<ReadonlySet<string>> => collectDigests(digests, (some) => db.all(STILL_LINKED, before, ...some));

async function collectDigests(
  digests: readonly string[],
  find: (some: readonly string[]) => MaybePromise<readonly { readonly digest: string }[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const some of parameterBatches(digests)) for (const { digest } of await find(some)) found.add(digest);
  return found;
}
