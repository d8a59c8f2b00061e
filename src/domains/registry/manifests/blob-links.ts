import type { Uid } from '../../../base/uid.ts';
import type { Reader, Transaction } from '../../../store/store.ts';
import { lockRepo } from '../repos/repos.ts';
import { countBlob, uncountBlob } from '../storage/organization-storage.ts';

const LINK = `INSERT INTO blob_link (repo, digest, size, linked) VALUES ($1, $2, $3, $4)
  ON CONFLICT (repo, digest) DO NOTHING`;
const RENEW = 'UPDATE blob_link SET linked = $3 WHERE repo = $1 AND digest = $2';
const FIND = 'SELECT size, linked FROM blob_link WHERE repo = $1 AND digest = $2';
const FIND_REPOS = 'SELECT repo FROM blob_link WHERE digest = $1 ORDER BY linked DESC LIMIT $2';
const SCAN_DIGESTS = 'SELECT DISTINCT digest FROM blob_link WHERE digest > $1 ORDER BY digest LIMIT $2';
const COUNT_DIGESTS = 'SELECT count(DISTINCT digest) AS n FROM blob_link';
const UNLINK = 'DELETE FROM blob_link WHERE repo = $1 AND digest = $2 RETURNING size';

export interface BlobLink {
  readonly size: number;
  /** When the blob was last pushed, or looked up for a push. Garbage collection keeps it for some time after that. */
  readonly linked: number;
}

/** Adds a blob to a repo. If the repo has it already, its grace period for garbage collection starts again. */
export async function linkBlob(
  tx: Transaction,
  repo: string,
  digest: string,
  size: number,
  now: number,
): Promise<void> {
  await lockRepo(tx, repo);
  if ((await tx.run(LINK, repo, digest, size, now)) > 0) await countBlob(tx, repo, digest, size);
  else await tx.run(RENEW, repo, digest, now);
}

/** The link of a repo to a blob. A repo without it does not have the blob, even when another repo has it. */
export async function findBlobLink(db: Reader, repo: string, digest: string): Promise<BlobLink | undefined> {
  const row = await db.get<{ size: number; linked: number }>(FIND, repo, digest);
  return row && { size: row.size, linked: row.linked };
}

/** The uids of repos that link a blob, most recently linked first. */
export async function findReposLinking(db: Reader, digest: string, limit: number): Promise<Uid[]> {
  return (await db.all<{ repo: Uid }>(FIND_REPOS, digest, limit)).map(({ repo }) => repo);
}

/** The digests of all blobs that a repo has, in order, beginning after the digest `after`. */
export const scanLinkedDigests = async (db: Reader, after: string, limit: number): Promise<string[]> =>
  (await db.all<{ digest: string }>(SCAN_DIGESTS, after, limit)).map(({ digest }) => digest);

/** How many different blobs the repos have. Reads all links. */
export const countLinkedDigests = async (db: Reader): Promise<number> =>
  Number((await db.get<{ n: number }>(COUNT_DIGESTS))?.n ?? 0);

/** Adds a blob of the repo `from` to `repo`. Returns undefined when `from` does not have it. */
export async function mountBlob(
  tx: Transaction,
  from: string,
  repo: string,
  digest: string,
  now: number,
): Promise<BlobLink | undefined> {
  // Locked, so that garbage collection cannot remove the last link while another one is made from it.
  const source = await findBlobLink(tx.forShare, from, digest);
  if (!source) return undefined;
  await linkBlob(tx, repo, digest, source.size, now);
  return { size: source.size, linked: now };
}

/** Removes a blob from a repo. Returns whether the repo had it. */
export async function unlinkBlob(tx: Transaction, repo: string, digest: string): Promise<boolean> {
  const [deleted] = await tx.runReturning<{ size: number }>(UNLINK, repo, digest);
  if (deleted) await uncountBlob(tx, repo, digest, deleted.size);
  return deleted !== undefined;
}
