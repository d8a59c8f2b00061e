import type { BlobEntry, Blobs } from '../../blobs/blobs.ts';
import { BlobError } from '../../blobs/errors.ts';
import {
  deleteOrphan,
  findDigestsLinkedAfterGc,
  findLinkedDigests,
  findOrphanReferrers,
  findUnreferencedLinks,
  type GarbageBatch,
  type RepoDigest,
  unlinkUnreferenced,
} from '../../domains/registry/manifests/garbage.ts';
import { closeUpload, scanOldUploads } from '../../domains/registry/storage/open-uploads.ts';
import { getSetting, putSetting } from '../../store/settings.ts';
import type { Store } from '../../store/store.ts';
import { endGc, lockForGc } from './gc-lock.ts';

export interface CollectionOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly now: number;
  /** Content that was pushed, or found by a push, within this time is kept. */
  readonly graceMs: number;
  /** Only counts, deletes nothing. */
  readonly dryRun?: boolean;
}

/** How much was deleted, or would be. */
export interface CollectedGarbage {
  referrers: number;
  links: number;
  blobs: number;
  bytes: number;
  uploads: number;
}

interface Work extends Required<CollectionOptions> {
  /** Content that is not older than this is kept. */
  readonly before: number;
  readonly collected: CollectedGarbage;
}

/** Works in small steps from the cursor `after` on, and yields the new cursor after each step. */
type Phase = (work: Work, after: string) => AsyncGenerator<string>;

const phases: Readonly<Record<string, Phase>> = { referrers, links, blobs, uploads };

/**
 * Deletes unused content while the server runs: referrers of deleted manifests, then links that no manifest needs, then
 * blobs that no repo links, then abandoned uploads. Its progress is stored, so that the next collection resumes one that
 * was killed.
 */
export async function collectGarbage(options: CollectionOptions): Promise<CollectedGarbage> {
  const collected: CollectedGarbage = { referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 };
  const work: Work = { dryRun: false, ...options, before: options.now - options.graceMs, collected };
  const { store, dryRun } = work;
  const names = Object.keys(phases);
  const progress = dryRun ? undefined : await readProgress(store);
  for (const name of names.slice(Math.max(0, names.indexOf(progress?.phase ?? '')))) {
    const after = name === progress?.phase ? progress.after : '';
    for await (const reached of phases[name]?.(work, after) ?? []) {
      if (!dryRun) await saveProgress(store, { phase: name, after: reached });
    }
  }
  if (!dryRun) await saveProgress(store, undefined);
  return collected;
}

interface Progress {
  readonly phase: string;
  readonly after: string;
}

const PROGRESS = 'registry.collection.stand';

async function readProgress(store: Store): Promise<Progress | undefined> {
  const text = await getSetting(store.reader, PROGRESS);
  return text ? JSON.parse(text) : undefined;
}

const saveProgress = (store: Store, progress: Progress | undefined): Promise<void> =>
  store.write((tx) => putSetting(tx, PROGRESS, progress ? JSON.stringify(progress) : ''));

/** Rows read by one statement. */
const READ_BATCH = 500;
/** Items deleted in one transaction. Other writers wait meanwhile. */
const DELETE_BATCH = 50;

/** The actor that the tag history shows. */
const ACTOR = 'garbage collection';

function referrers({ store, now, before, dryRun, collected }: Work, after: string): AsyncGenerator<string> {
  const find = (cursor: RepoDigest | undefined) =>
    findOrphanReferrers(store.reader, { after: cursor, before, limit: READ_BATCH });
  return walk(after, find, async (found) => {
    for (const orphan of found) {
      if (dryRun || (await store.write((db) => deleteOrphan({ db, now, actor: ACTOR }, orphan, before))))
        collected.referrers++;
    }
  });
}

function links({ store, before, dryRun, collected }: Work, after: string): AsyncGenerator<string> {
  const find = (cursor: RepoDigest | undefined) =>
    findUnreferencedLinks(store.reader, { after: cursor, before, limit: READ_BATCH });
  return walk(after, find, async (found) => {
    for (let at = 0; at < found.length; at += DELETE_BATCH) {
      const some = found.slice(at, at + DELETE_BATCH);
      collected.links += dryRun ? some.length : await store.write((tx) => unlinkUnreferenced(tx, some, before));
    }
  });
}

/** Walks over a table in batches. */
async function* walk<T>(
  after: string,
  find: (cursor: RepoDigest | undefined) => Promise<GarbageBatch<T>>,
  remove: (found: readonly T[]) => Promise<void>,
): AsyncGenerator<string> {
  let cursor = cursorIn(after);
  do {
    const { found, next } = await find(cursor);
    await remove(found);
    if (next) yield JSON.stringify(next);
    cursor = next;
  } while (cursor !== undefined);
}

const cursorIn = (text: string): RepoDigest | undefined => (text === '' ? undefined : JSON.parse(text));

async function* blobs(work: Work, after: string): AsyncGenerator<string> {
  let some: BlobEntry[] = [];
  for await (const blob of work.blobs.list(after || undefined)) {
    if (blob.changed < work.before) some.push(blob);
    if (some.length < DELETE_BATCH) continue;
    await removeUnlinked(work, some);
    some = [];
    yield blob.digest;
  }
  await removeUnlinked(work, some);
  if (!work.dryRun) await work.store.write(endGc);
}

async function removeUnlinked(
  { store, blobs, now, before, dryRun, collected }: Work,
  some: readonly BlobEntry[],
): Promise<void> {
  // A dry run also counts the blobs of links that a real run would have deleted before.
  const linked = dryRun
    ? await findDigestsLinkedAfterGc(store.reader, digestsOf(some), before)
    : await findLinkedDigests(store.reader, digestsOf(some));
  const unlinked = some.filter(({ digest }) => !linked.has(digest));
  const removed = new Set<BlobEntry>(dryRun ? unlinked : []);
  if (unlinked.length > 0 && !dryRun) {
    await store.write(async (tx) => {
      await lockForGc(tx, now);
      const kept = await findLinkedDigests(tx, digestsOf(unlinked));
      // Within the transaction, because it holds the lock. If the transaction fails, the deleted files were still unused.
      for (const blob of unlinked) {
        if (!kept.has(blob.digest) && (await blobs.remove(blob.digest, { before }))) removed.add(blob);
      }
    });
  }
  for (const { size } of removed) {
    collected.blobs++;
    collected.bytes += size;
  }
}

const digestsOf = (entries: readonly BlobEntry[]): string[] => entries.map(({ digest }) => digest);

async function* uploads({ store, blobs, before, dryRun, collected }: Work): AsyncGenerator<string> {
  for await (const { id, size, changed } of blobs.uploads()) {
    if (changed >= before || !(dryRun || (await cancelled(blobs, id)))) continue;
    collected.uploads++;
    collected.bytes += size;
  }
  if (!dryRun) await forgetUploads(store, blobs, before);
  // Uploads have no order, so a resumed collection checks all of them again.
  yield '';
}

/** Deletes the rows of uploads that no longer exist, so that they do not count against a quota. */
async function forgetUploads(store: Store, blobs: Blobs, before: number): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const ids: string[] = await scanOldUploads(store.reader, before, after as string);
    for (const id of ids) {
      if ((await blobs.offset(id)) === undefined) await store.write((tx) => closeUpload(tx, id));
    }
    after = ids.at(-1);
  }
}

async function cancelled(blobs: Blobs, id: string): Promise<boolean> {
  try {
    return await blobs.cancel(id);
  } catch (error) {
    if (error instanceof BlobError && error.reason === 'busy') return false;
    throw error;
  }
}
