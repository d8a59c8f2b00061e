import type { Reader, Transaction } from '../../../store/store.ts';
import { holdRepo } from '../repos/repos.ts';

const LINK = `INSERT INTO blob_link (repo, digest, size, linked) VALUES ($1, $2, $3, $4)
  ON CONFLICT (repo, digest) DO UPDATE SET linked = excluded.linked`;
const FIND = 'SELECT size, linked FROM blob_link WHERE repo = $1 AND digest = $2';
const LINKING = 'SELECT repo FROM blob_link WHERE digest = $1 ORDER BY linked DESC LIMIT $2';
const UNLINK = 'DELETE FROM blob_link WHERE repo = $1 AND digest = $2';

export interface BlobLink {
  readonly size: number;
  /** When somebody last pushed it, or asked for it in order to push; garbage collection leaves it alone for a while. */
  readonly linked: number;
}

/** Lets a repo have a blob. Again for one that it has already, its time of grace begins anew. */
export async function linkBlob(
  tx: Transaction,
  repo: string,
  digest: string,
  size: number,
  now: number,
): Promise<void> {
  await holdRepo(tx, repo);
  await tx.run(LINK, repo, digest, size, now);
}

/** A blob that a repo does not link is not there for it, even when another repo stores the same bytes. */
export async function blobLink(db: Reader, repo: string, digest: string, lock = ''): Promise<BlobLink | undefined> {
  const row = await db.get<{ size: number; linked: number }>(FIND + lock, repo, digest);
  return row && { size: row.size, linked: row.linked };
}

/** Repos that have a blob, those first that got it last. */
export async function reposLinking(db: Reader, digest: string, limit: number): Promise<string[]> {
  return (await db.all<{ repo: string }>(LINKING, digest, limit)).map(({ repo }) => repo);
}

/** Lets `repo` have a blob of `from`. Nothing when `from` has no such blob. */
export async function mountBlob(
  tx: Transaction,
  from: string,
  repo: string,
  digest: string,
  now: number,
): Promise<BlobLink | undefined> {
  // Held, so that the last link to a blob never goes while another is made of it.
  const source = await blobLink(tx.forShare, from, digest);
  if (!source) return undefined;
  await linkBlob(tx, repo, digest, source.size, now);
  return { size: source.size, linked: now };
}

/** Says whether the repo had it. */
export const unlinkBlob = async (tx: Transaction, repo: string, digest: string): Promise<boolean> =>
  (await tx.run(UNLINK, repo, digest)) > 0;
