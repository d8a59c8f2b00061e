import type { Reader, Row, Transaction } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import { isTagName } from '../repos/names.ts';
import { holdRepo } from '../repos/repos.ts';
import { deleteTagsOf, pointTag, type RegistryWrite } from '../tags/tag-targets.ts';
import { imageContent, indexContent } from './content.ts';
import type { Manifest, PushedManifest } from './manifest.ts';
import { linkNeeds, requireBlobs, requireManifests } from './needs.ts';

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
const HOLD = 'SELECT digest FROM manifest WHERE repo = $1 AND digest = $2';
const PUT = `INSERT INTO manifest
  (repo, digest, media_type, artifact_type, subject, annotations, content_size, platforms, pushed, bytes)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
  ON CONFLICT (repo, digest) DO UPDATE SET media_type = excluded.media_type, artifact_type = excluded.artifact_type,
    content_size = excluded.content_size, platforms = excluded.platforms, pushed = excluded.pushed`;
const DELETE = 'DELETE FROM manifest WHERE repo = $1 AND digest = $2';
const DELETE_LINKS = 'DELETE FROM manifest_link WHERE repo = $1 AND manifest = $2';

export async function findManifest(db: Reader, repo: string, digest: string): Promise<StoredManifest | undefined> {
  return toManifest(await db.get<ManifestRow>(FIND, repo, digest));
}

/** What most pulls begin with, so that it is one statement. */
export async function findTagged(db: Reader, repo: string, tag: string): Promise<StoredManifest | undefined> {
  return toManifest(await db.get<ManifestRow>(FIND_TAGGED, repo, tag));
}

const toManifest = (row: ManifestRow | undefined): StoredManifest | undefined =>
  row && { digest: row.digest, mediaType: row.media_type, bytes: row.bytes };

/** Whether the repo has it; if so, it cannot be deleted before the transaction ends. */
export const holdManifest = async (tx: Transaction, repo: string, digest: string): Promise<boolean> =>
  (await tx.forShare.get(HOLD, repo, digest)) !== undefined;

/** An annotation that marks a tag when it is pushed, or takes the mark away. */
const DEPRECATED = 'dev.wharfinger.deprecated';
const FLAGS: ReadonlyMap<string | undefined, boolean> = new Map([
  ['true', true],
  ['false', false],
]);

export interface PutResult {
  readonly subject?: string;
  /** Where the tag pointed before. */
  readonly previousDigest?: string;
}

/** Stores a manifest once everything it needs is in the repo, and points a tag to it. */
export async function putManifest(
  write: RegistryWrite,
  repo: string,
  pushed: PushedManifest,
  tag?: string,
): Promise<PutResult> {
  const { db, now } = write;
  const { digest, bytes, manifest, platform } = pushed;
  if (tag !== undefined && !isTagName(tag)) {
    throw new RegistryError('TAG_INVALID', 'a tag is up to 128 letters, digits, _, . and -, the first no . or -');
  }
  await holdRepo(db, repo);
  const blobs = await requireBlobs(db, repo, manifest);
  const children = await requireManifests(db, repo, manifest);
  const content =
    manifest.kind === 'index' ? indexContent(manifest, children) : imageContent(manifest, platform, blobs);
  await db.run(
    PUT,
    repo,
    digest,
    manifest.mediaType,
    manifest.artifactType ?? null,
    manifest.subject ?? null,
    annotationsOf(manifest),
    content.size,
    JSON.stringify(content.platforms),
    now,
    bytes,
  );
  await linkNeeds(db, repo, digest, [...blobs.keys(), ...children.keys()]);
  const deprecated = FLAGS.get(manifest.annotations[DEPRECATED]);
  const previousDigest = tag === undefined ? undefined : await pointTag(write, repo, tag, digest, deprecated);
  const { subject } = manifest;
  return { ...(subject !== undefined && { subject }), ...(previousDigest !== undefined && { previousDigest }) };
}

/** Lists of referrers show them, so that they stand apart from the bytes; nothing else asks for them. */
const annotationsOf = ({ subject, annotations }: Manifest): string | null =>
  subject === undefined || Object.keys(annotations).length === 0 ? null : JSON.stringify(annotations);

/** Says whether there was such a manifest. The tags that point to it go along. */
export async function deleteManifest(write: RegistryWrite, repo: string, digest: string): Promise<boolean> {
  const { db } = write;
  if (!(await db.forUpdate.get(HOLD, repo, digest))) return false;
  await deleteTagsOf(write, repo, digest);
  await db.run(DELETE_LINKS, repo, digest);
  await db.run(DELETE, repo, digest);
  return true;
}
