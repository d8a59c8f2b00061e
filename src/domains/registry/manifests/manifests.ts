import { rootOf } from '../../../base/uid.ts';
import type { Reader, Row, Transaction } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import { isTagName } from '../repos/name-rules.ts';
import { lockRepo } from '../repos/repos.ts';
import { countBytes } from '../storage/organization-storage.ts';
import { deleteTagsOf, pointTag, type RegistryWrite } from '../tags/tag-targets.ts';
import { imageContentSize, indexContentSize } from './content-size.ts';
import type { Manifest, PushedManifest } from './manifest.ts';
import { insertManifestLinks, requireBlobs, requireChildManifests } from './manifest-links.ts';

/** A manifest exactly as it was pushed. */
export interface StoredManifest {
  readonly digest: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

interface ManifestRow extends Row {
  readonly digest: string;
  readonly media_type: string;
  readonly bytes: Uint8Array;
}

const FIND = 'SELECT digest, media_type, bytes FROM manifest WHERE repo = $1 AND digest = $2';
const FIND_TAGGED = `SELECT m.digest, m.media_type, m.bytes FROM tag_target t
  JOIN manifest m ON m.repo = t.repo AND m.digest = t.digest WHERE t.repo = $1 AND t.name = $2`;
const LOCK = 'SELECT digest FROM manifest WHERE repo = $1 AND digest = $2';
const PUT = `INSERT INTO manifest
  (repo, digest, media_type, artifact_type, subject, annotations, content_size, platforms, pushed, bytes)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
  ON CONFLICT (repo, digest) DO NOTHING`;
const RENEW = `UPDATE manifest SET media_type = $3, artifact_type = $4, content_size = $5, platforms = $6, pushed = $7
  WHERE repo = $1 AND digest = $2`;
const DELETE = 'DELETE FROM manifest WHERE repo = $1 AND digest = $2 RETURNING length(bytes) AS size';
const DELETE_LINKS = 'DELETE FROM manifest_link WHERE repo = $1 AND manifest = $2';

export async function findManifest(db: Reader, repo: string, digest: string): Promise<StoredManifest | undefined> {
  return toManifest(await db.get<ManifestRow>(FIND, repo, digest));
}

/** Finds the manifest of a tag. Most pulls begin with it, so it is one statement. */
export async function findTagged(db: Reader, repo: string, tag: string): Promise<StoredManifest | undefined> {
  return toManifest(await db.get<ManifestRow>(FIND_TAGGED, repo, tag));
}

const toManifest = (row: ManifestRow | undefined): StoredManifest | undefined =>
  row && { digest: row.digest, mediaType: row.media_type, bytes: row.bytes };

/** Locks a manifest, so that it cannot be deleted before the transaction ends. Returns whether the repo has it. */
export const lockManifest = async (tx: Transaction, repo: string, digest: string): Promise<boolean> =>
  (await tx.forShare.get(LOCK, repo, digest)) !== undefined;

/** The annotation that sets or clears `deprecated` of the tag that a manifest is pushed to. */
const DEPRECATED_ANNOTATION = 'dev.wharfinger.deprecated';
const FLAGS: ReadonlyMap<string | undefined, boolean> = new Map([
  ['true', true],
  ['false', false],
]);

export interface PutManifestResult {
  readonly subject?: string;
  /** The digest that the tag pointed to before. */
  readonly previousDigest?: string;
}

/** Stores a manifest and points a tag to it. Refuses one whose blobs or children are not all in the repo. */
export async function putManifest(
  write: RegistryWrite,
  repo: string,
  pushed: PushedManifest,
  tag?: string,
): Promise<PutManifestResult> {
  const { db, now } = write;
  const { digest, bytes, manifest, platform } = pushed;
  if (tag !== undefined && !isTagName(tag)) {
    throw new RegistryError(
      'TAG_INVALID',
      'a tag must be 1 to 128 letters, digits, _, . and -, and must not begin with . or -',
    );
  }
  const repoUid = await lockRepo(db, repo);
  const blobs = await requireBlobs(db, repo, manifest);
  const children = await requireChildManifests(db, repo, manifest);
  const content =
    manifest.kind === 'index' ? indexContentSize(manifest, children) : imageContentSize(manifest, platform, blobs);
  const type = [manifest.mediaType, manifest.artifactType ?? null] as const;
  const changing = [content.size, JSON.stringify(content.platforms), now] as const;
  const fixed = [manifest.subject ?? null, annotationsColumn(manifest)] as const;
  const isNew = (await db.run(PUT, repo, digest, ...type, ...fixed, ...changing, bytes)) > 0;
  if (!isNew) await db.run(RENEW, repo, digest, ...type, ...changing);
  await insertManifestLinks(db, repo, digest, [...blobs.keys(), ...children.keys()]);
  const deprecated = FLAGS.get(manifest.annotations[DEPRECATED_ANNOTATION]);
  const previousDigest = tag === undefined ? undefined : await pointTag(write, repoUid, tag, digest, deprecated);
  // Last, because the pushes of an organization wait for each other from here on.
  if (isNew) await countBytes(db, rootOf(repo), bytes.length);
  const { subject } = manifest;
  return { ...(subject !== undefined && { subject }), ...(previousDigest !== undefined && { previousDigest }) };
}

/** Only lists of referrers show annotations, so only those of referrers are in a column of their own. */
const annotationsColumn = ({ subject, annotations }: Manifest): string | null =>
  subject === undefined || Object.keys(annotations).length === 0 ? null : JSON.stringify(annotations);

/** Deletes a manifest with the tags that point to it. Returns whether it existed. */
export async function deleteManifest(write: RegistryWrite, repo: string, digest: string): Promise<boolean> {
  const { db } = write;
  if (!(await db.forUpdate.get(LOCK, repo, digest))) return false;
  await deleteTagsOf(write, repo, digest);
  await db.run(DELETE_LINKS, repo, digest);
  const [deleted] = await db.runReturning<{ size: number }>(DELETE, repo, digest);
  await countBytes(db, rootOf(repo), -Number(deleted?.size ?? 0));
  return true;
}
