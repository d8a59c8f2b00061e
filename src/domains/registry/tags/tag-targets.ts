import { clone, create, equals } from '@bufbuild/protobuf';
import { newUid, type Uid } from '../../../base/uid.ts';
import { type Tag, TagSchema } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import { find, findReferringBelow } from '../../../resource/read.ts';
import { deleteOne, insert, update } from '../../../resource/write.ts';
import type { BulkInsert } from '../../../store/bulk-insert.ts';
import type { Reader, Row, Transaction } from '../../../store/store.ts';
import { deprecationState, tags } from './tags.ts';

/** A transaction that changes the registry, with the time and the author of the change for the tag history. */
export interface RegistryWrite {
  readonly db: Transaction;
  readonly now: number;
  /** The uid of the identity that makes the change. */
  readonly actor: string;
}

const CLAIM: BulkInsert = {
  into: 'tag_target',
  columns: { repo: 'text', name: 'text', digest: 'text', uid: 'text' },
  conflict: 'skip',
  returning: ['name'],
};
const FIND = 'SELECT uid, digest FROM tag_target WHERE repo = $1 AND name = $2';
const MOVE = 'UPDATE tag_target SET digest = $3 WHERE repo = $1 AND name = $2';
const DELETE = 'DELETE FROM tag_target WHERE repo = $1 AND name = $2';
const LIST = `SELECT name FROM tag_target WHERE repo = $1 AND name > $2 AND digest <> '' ORDER BY name LIMIT $3`;
const HISTORY: BulkInsert = {
  into: 'tag_history',
  columns: { repo: 'text', name: 'text', digest: 'text', changed: 'integer', actor: 'text' },
};

interface TargetRow extends Row {
  readonly uid: Uid;
  readonly digest: string;
}

/** The names of the tags with an image of a repo that sort after `after`, in bytewise order. */
export async function listTagNames(
  db: Reader,
  repo: string,
  { after = '', limit }: { readonly after?: string; readonly limit: number },
): Promise<string[]> {
  return (await db.all<{ name: string }>(LIST, repo, after, limit)).map(({ name }) => name);
}

/**
 * Claims the name of a tag before the tag is stored under `uid`. Returns false when another tag has the name. A tag that
 * has no image yet has an empty digest, and no history.
 */
export async function claimTag(
  { db, now, actor }: RegistryWrite,
  repo: string,
  { name, digest, uid }: Pick<Tag, 'name' | 'digest' | 'uid'>,
): Promise<boolean> {
  if ((await db.insert(CLAIM, [repo, name, digest, uid])).length === 0) return false;
  if (digest !== '') await db.insert(HISTORY, [repo, name, digest, now, actor]);
  return true;
}

/** Releases the name of a tag before the tag is deleted. */
export async function releaseTag({ db, now, actor }: RegistryWrite, { parent, message }: Stored<Tag>): Promise<void> {
  await db.run(DELETE, parent, message.name);
  if (message.digest !== '') await db.insert(HISTORY, [parent, message.name, null, now, actor]);
}

/** Creates a tag, or moves it to another image. Returns the digest that it pointed to before, if any. */
export async function pointTag(
  write: RegistryWrite,
  repo: Uid,
  name: string,
  digest: string,
  deprecated: boolean | undefined,
): Promise<string | undefined> {
  const uid = newUid(repo);
  if (await claimTag(write, repo, { name, digest, uid })) {
    const message = create(TagSchema, { name, digest, deprecated: deprecated ?? false });
    const state = deprecationState(message, write.now);
    await insert(write.db, tags, { message, uid, parent: repo, state }, write.now);
    return undefined;
  }
  const before = await findTagForUpdate(write.db, repo, name);
  // Another transaction deleted the tag after the claim failed, so the name is free now.
  if (!before) return pointTag(write, repo, name, digest, deprecated);
  await changeTag(write, before, { digest, ...(deprecated !== undefined && { deprecated }) });
  return before.message.digest || undefined;
}

/** Changes a tag, which must be locked for update. Returns `before` itself when the change has no effect. */
export async function changeTag(
  { db, now, actor }: RegistryWrite,
  before: Stored<Tag>,
  change: Partial<Pick<Tag, 'digest' | 'deprecated' | 'bundles'>>,
): Promise<Stored<Tag>> {
  const old = before.message;
  const message = Object.assign(clone(TagSchema, old), change);
  if (equals(TagSchema, old, message)) return before;
  const after = await update(db, tags, before, { message, state: deprecationState(message, now, before.state) }, now);
  if (old.digest === message.digest) return after;
  await db.run(MOVE, before.parent, old.name, message.digest);
  await db.insert(HISTORY, [before.parent, old.name, message.digest, now, actor]);
  return after;
}

/** Deletes every tag that points to an image, before the image is deleted. */
export async function deleteTagsOf(write: RegistryWrite, repo: string, digest: string): Promise<void> {
  for (const stored of await findTagsForUpdate(write.db, repo, digest)) await deleteStoredTag(write, stored);
}

async function deleteStoredTag(write: RegistryWrite, stored: Stored<Tag>): Promise<void> {
  await releaseTag(write, stored);
  await deleteOne(write.db, tags, stored);
}

/** Locks the resource, and never its row in tag_target first, so that two writers of one tag cannot deadlock. */
export async function findTagForUpdate(tx: Transaction, repo: string, name: string): Promise<Stored<Tag> | undefined> {
  const target = await tx.get<TargetRow>(FIND, repo, name);
  return target && find(tx.forUpdate, tags, target.uid);
}

/** Locks and returns the tags that point to an image, in the order of their uids. */
export async function findTagsForUpdate(tx: Transaction, repo: string, digest: string): Promise<Stored<Tag>[]> {
  const found: Stored<Tag>[] = [];
  for (const uid of await findReferringBelow(tx, tags, 'digest', digest, repo)) {
    const stored = await find(tx.forUpdate, tags, uid);
    // Another transaction may have moved the tag before it was locked.
    if (stored?.message.digest === digest) found.push(stored);
  }
  return found;
}
