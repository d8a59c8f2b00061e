import { clone, create, equals } from '@bufbuild/protobuf';
import { newUid } from '../../../base/uid.ts';
import { type Tag, TagSchema } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import { find, findReferringBelow } from '../../../resource/read.ts';
import { deleteOne, insert, update } from '../../../resource/write.ts';
import type { BulkInsert } from '../../../store/bulk-insert.ts';
import type { Reader, Row, Transaction } from '../../../store/store.ts';
import { deprecation, tags } from './tags.ts';

/** A transaction of the registry: who writes, and when. */
export interface RegistryWrite {
  readonly db: Transaction;
  readonly now: number;
  /** The uid of the identity that acts. */
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
const DROP = 'DELETE FROM tag_target WHERE repo = $1 AND name = $2';
const LIST = 'SELECT name FROM tag_target WHERE repo = $1 AND name > $2 ORDER BY name LIMIT $3';
const HISTORY: BulkInsert = {
  into: 'tag_history',
  columns: { repo: 'text', name: 'text', digest: 'text', changed: 'integer', actor: 'text' },
};

interface Target extends Row {
  readonly uid: string;
  readonly digest: string;
}

/** Names in bytewise order, from the first after `after`. */
export async function listTagNames(
  db: Reader,
  repo: string,
  { after = '', limit }: { readonly after?: string; readonly limit: number },
): Promise<string[]> {
  return (await db.all<{ name: string }>(LIST, repo, after, limit)).map(({ name }) => name);
}

/** Takes a free name for the tag that is about to be stored under `uid`, and says whether it was free. */
export async function claimTag(
  { db, now, actor }: RegistryWrite,
  repo: string,
  { name, digest, uid }: Pick<Tag, 'name' | 'digest' | 'uid'>,
): Promise<boolean> {
  if ((await db.insert(CLAIM, [repo, name, digest, uid])).length === 0) return false;
  await db.insert(HISTORY, [repo, name, digest, now, actor]);
  return true;
}

/** Frees the name of a tag that is about to go. */
export async function releaseTag({ db, now, actor }: RegistryWrite, { parent, message }: Stored<Tag>): Promise<void> {
  await db.run(DROP, parent, message.name);
  await db.insert(HISTORY, [parent, message.name, null, now, actor]);
}

/** Makes a name point to an image, whether or not it did to another, and answers which. */
export async function pointTag(
  write: RegistryWrite,
  repo: string,
  name: string,
  digest: string,
  deprecated: boolean | undefined,
): Promise<string | undefined> {
  const uid = newUid(repo);
  if (await claimTag(write, repo, { name, digest, uid })) {
    const message = create(TagSchema, { name, digest, deprecated: deprecated ?? false });
    const state = deprecation(message, write.now);
    await insert(write.db, tags, { message, uid, parent: repo, state }, write.now);
    return undefined;
  }
  const before = await findTagForUpdate(write.db, repo, name);
  // Deleted by somebody else in the meantime, so that the name is free now.
  if (!before) return pointTag(write, repo, name, digest, deprecated);
  await changeTag(write, before, { digest, ...(deprecated !== undefined && { deprecated }) });
  return before.message.digest;
}

/** Changes a tag that is held; nothing happens when it is so already. */
export async function changeTag(
  { db, now, actor }: RegistryWrite,
  before: Stored<Tag>,
  change: Partial<Pick<Tag, 'digest' | 'deprecated' | 'bundles'>>,
): Promise<Stored<Tag>> {
  const old = before.message;
  const message = Object.assign(clone(TagSchema, old), change);
  if (equals(TagSchema, old, message)) return before;
  const after = await update(db, tags, before, { message, state: deprecation(message, now, before.state) }, now);
  if (old.digest === message.digest) return after;
  await db.run(MOVE, before.parent, old.name, message.digest);
  await db.insert(HISTORY, [before.parent, old.name, message.digest, now, actor]);
  return after;
}

/** Says whether there was such a tag. */
export async function deleteTag(write: RegistryWrite, repo: string, name: string): Promise<boolean> {
  const stored = await findTagForUpdate(write.db, repo, name);
  if (stored) await removeTag(write, stored);
  return stored !== undefined;
}

/** Deletes every tag that points to an image that is about to go. */
export async function deleteTagsOf(write: RegistryWrite, repo: string, digest: string): Promise<void> {
  for (const uid of await findReferringBelow(write.db, tags, 'digest', digest, repo)) {
    const stored = await find(write.db.forUpdate, tags, uid);
    // Moved on by somebody else in the meantime, it stays.
    if (stored?.message.digest === digest) await removeTag(write, stored);
  }
}

async function removeTag(write: RegistryWrite, stored: Stored<Tag>): Promise<void> {
  await releaseTag(write, stored);
  await deleteOne(write.db, tags, stored);
}

/** Locks the resource, and never its row in tag_target first, so that two writers of one tag cannot deadlock. */
async function findTagForUpdate(tx: Transaction, repo: string, name: string): Promise<Stored<Tag> | undefined> {
  const target = await tx.get<Target>(FIND, repo, name);
  return target && find(tx.forUpdate, tags, target.uid);
}
