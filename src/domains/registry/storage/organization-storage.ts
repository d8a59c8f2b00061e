import { descendantRange, rootOf } from '../../../base/uid.ts';
import type { Transaction } from '../../../store/store.ts';

// The bytes that an organization stores: the blobs that its repos link, each once, and its manifests. The total is a row
// that changes in the transaction of each push and deletion, so it survives a crash and needs no recount. Pushes of one
// organization wait for each other at this row, for as long as a commit takes; those of different ones do not.

const LOCK = `INSERT INTO organization_storage (organization, bytes) VALUES ($1, 0)
  ON CONFLICT (organization) DO UPDATE SET bytes = organization_storage.bytes RETURNING bytes`;
const ADD = `INSERT INTO organization_storage (organization, bytes) VALUES ($1, $2)
  ON CONFLICT (organization) DO UPDATE SET bytes = organization_storage.bytes + excluded.bytes RETURNING bytes`;
const LINKED_ELSEWHERE = `SELECT repo FROM blob_link
  WHERE digest = $1 AND repo > $2 AND repo < $3 AND repo <> $4 LIMIT 1`;
const ONLY_IN_REPO = `SELECT coalesce(sum(l.size), 0) AS bytes FROM blob_link l WHERE l.repo = $1 AND NOT EXISTS
  (SELECT 1 FROM blob_link o WHERE o.digest = l.digest AND o.repo > $2 AND o.repo < $3 AND o.repo <> l.repo)`;
const MANIFESTS_OF_REPO = 'SELECT coalesce(sum(length(bytes)), 0) AS bytes FROM manifest WHERE repo = $1';

interface BytesRow {
  readonly [column: string]: number;
  readonly bytes: number;
}

/** Locks the total of an organization until the commit, and returns it. */
export async function lockStorage(tx: Transaction, organization: string): Promise<number> {
  const [row] = await tx.runReturning<BytesRow>(LOCK, organization);
  return Number(row?.bytes ?? 0);
}

/** Counts a new link of a repo to a blob. Throws RESOURCE_EXHAUSTED. */
export async function countBlob(tx: Transaction, repo: string, digest: string, size: number): Promise<void> {
  const organization = rootOf(repo);
  if (await isOnlyLink(tx, organization, repo, digest)) await countBytes(tx, organization, size);
}

/** Counts a deleted link of a repo to a blob. */
export async function uncountBlob(tx: Transaction, repo: string, digest: string, size: number): Promise<void> {
  const organization = rootOf(repo);
  if (await isOnlyLink(tx, organization, repo, digest)) await countBytes(tx, organization, -size);
}

/** Locked first, so that of two pushes of the same blob the second one sees the link of the first. */
async function isOnlyLink(tx: Transaction, organization: string, repo: string, digest: string): Promise<boolean> {
  await lockStorage(tx, organization);
  return (await tx.get(LINKED_ELSEWHERE, digest, ...descendantRange(organization), repo)) === undefined;
}

/** Adds bytes to the total of an organization, or subtracts them. Throws RESOURCE_EXHAUSTED when it becomes too large. */
export async function countBytes(tx: Transaction, organization: string, bytes: number): Promise<void> {
  const [row] = await tx.runReturning<BytesRow>(ADD, organization, bytes);
  const limit = tx.quotas?.limits.storageBytes ?? Infinity;
  if (bytes > 0 && Number(row?.bytes ?? 0) > limit) throw storageExhausted(tx, organization, limit);
}

/** Subtracts the content of a repo that is about to be deleted. */
export async function uncountRepo(tx: Transaction, repo: string): Promise<void> {
  const organization = rootOf(repo);
  await lockStorage(tx, organization);
  const blobs = await tx.get<BytesRow>(ONLY_IN_REPO, repo, ...descendantRange(organization));
  const manifests = await tx.get<BytesRow>(MANIFESTS_OF_REPO, repo);
  const bytes = Number(blobs?.bytes ?? 0) + Number(manifests?.bytes ?? 0);
  if (bytes > 0) await countBytes(tx, organization, -bytes);
}

export const storageExhausted = ({ quotas }: Transaction, organization: string, limit: number) =>
  quotas?.refuse(
    'storage',
    `organization:${organization}`,
    `an organization may store ${limit} bytes in the registry; delete images and wait for garbage collection, or ask an operator of the server to raise the limit`,
  );
