import type { BlobEntry, Blobs } from '../../blobs/blobs.ts';
import { BlobError } from '../../blobs/errors.ts';
import {
  type Batch,
  type Cursor,
  deleteOrphan,
  linkedDigests,
  orphanReferrers,
  stillLinkedDigests,
  unlinkUnreferenced,
  unreferencedLinks,
} from '../../domains/registry/manifests/garbage.ts';
import { getSetting, putSetting } from '../../store/settings.ts';
import type { Store } from '../../store/store.ts';
import { closeFence, openFence } from './gc-lock.ts';

export interface CollectionOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly now: number;
  /** What was pushed within this time, or asked for by a push, is left alone. */
  readonly graceMs: number;
  /** Counts and removes nothing. */
  readonly dryRun?: boolean;
}

/** How much went, or would go. */
export interface Collected {
  referrers: number;
  links: number;
  blobs: number;
  bytes: number;
  uploads: number;
}

interface Work extends Required<CollectionOptions> {
  /** What is as old as this or younger stays. */
  readonly before: number;
  readonly collected: Collected;
}

/** Does its work in small steps from behind `after`, and says after each how far it is. */
type Phase = (work: Work, after: string) => AsyncGenerator<string>;

const phases: Readonly<Record<string, Phase>> = { referrers, links, blobs, uploads };

/**
 * Removes what nothing needs, while the server runs: referrers of what is gone, then links that no manifest needs, then
 * blobs that no repo links, then uploads that nobody goes on with. Where it stands is kept, so that the next collection
 * takes up what one that was killed has left.
 */
export async function collectGarbage(options: CollectionOptions): Promise<Collected> {
  const collected: Collected = { referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 };
  const work: Work = { dryRun: false, ...options, before: options.now - options.graceMs, collected };
  const { store, dryRun } = work;
  const names = Object.keys(phases);
  const stand = dryRun ? undefined : await readStand(store);
  for (const name of names.slice(Math.max(0, names.indexOf(stand?.phase ?? '')))) {
    const after = name === stand?.phase ? stand.after : '';
    for await (const reached of phases[name]?.(work, after) ?? []) {
      if (!dryRun) await keepStand(store, { phase: name, after: reached });
    }
  }
  if (!dryRun) await keepStand(store, undefined);
  return collected;
}

interface Stand {
  readonly phase: string;
  readonly after: string;
}

const STAND = 'registry.collection.stand';

async function readStand(store: Store): Promise<Stand | undefined> {
  const text = await getSetting(store.reader, STAND);
  return text ? JSON.parse(text) : undefined;
}

const keepStand = (store: Store, stand: Stand | undefined): Promise<void> =>
  store.write((tx) => putSetting(tx, STAND, stand ? JSON.stringify(stand) : ''));

/** Rows to look at in one statement. */
const MANY = 500;
/** Things to remove in one transaction, which other writers wait for. */
const FEW = 50;

/** Who took a tag away, to the history of tags. */
const ACTOR = 'garbage collection';

function referrers({ store, now, before, dryRun, collected }: Work, after: string): AsyncGenerator<string> {
  const find = (cursor: Cursor | undefined) => orphanReferrers(store.reader, { after: cursor, before, limit: MANY });
  return walk(after, find, async (found) => {
    for (const orphan of found) {
      if (dryRun || (await store.write((db) => deleteOrphan({ db, now, actor: ACTOR }, orphan, before))))
        collected.referrers++;
    }
  });
}

function links({ store, before, dryRun, collected }: Work, after: string): AsyncGenerator<string> {
  const find = (cursor: Cursor | undefined) => unreferencedLinks(store.reader, { after: cursor, before, limit: MANY });
  return walk(after, find, async (found) => {
    for (let at = 0; at < found.length; at += FEW) {
      const some = found.slice(at, at + FEW);
      collected.links += dryRun ? some.length : await store.write((tx) => unlinkUnreferenced(tx, some, before));
    }
  });
}

/** Over a table, batch after batch. */
async function* walk<T>(
  after: string,
  find: (cursor: Cursor | undefined) => Promise<Batch<T>>,
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

const cursorIn = (text: string): Cursor | undefined => (text === '' ? undefined : JSON.parse(text));

async function* blobs(work: Work, after: string): AsyncGenerator<string> {
  let some: BlobEntry[] = [];
  for await (const blob of work.blobs.list(after || undefined)) {
    if (blob.changed < work.before) some.push(blob);
    if (some.length < FEW) continue;
    await removeUnlinked(work, some);
    some = [];
    yield blob.digest;
  }
  await removeUnlinked(work, some);
  if (!work.dryRun) await work.store.write(openFence);
}

async function removeUnlinked(
  { store, blobs, before, dryRun, collected }: Work,
  some: readonly BlobEntry[],
): Promise<void> {
  // A trial run counts what is linked only as long as no link goes.
  const linked = dryRun
    ? await stillLinkedDigests(store.reader, digestsOf(some), before)
    : await linkedDigests(store.reader, digestsOf(some));
  const free = some.filter(({ digest }) => !linked.has(digest));
  const removed = new Set<BlobEntry>(dryRun ? free : []);
  if (free.length > 0 && !dryRun) {
    await store.write(async (tx) => {
      await closeFence(tx);
      const kept = await linkedDigests(tx, digestsOf(free));
      // Within the transaction, for the sake of the fence; a file that goes though the transaction fails is no loss.
      for (const blob of free) {
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

async function* uploads({ blobs, before, dryRun, collected }: Work): AsyncGenerator<string> {
  for await (const { id, size, changed } of blobs.uploads()) {
    if (changed >= before || !(dryRun || (await cancelled(blobs, id)))) continue;
    collected.uploads++;
    collected.bytes += size;
  }
  // They have no order to stand in; a collection that was killed looks at all of them again.
  yield '';
}

async function cancelled(blobs: Blobs, id: string): Promise<boolean> {
  try {
    return await blobs.cancel(id);
  } catch (error) {
    if (error instanceof BlobError && error.reason === 'busy') return false;
    throw error;
  }
}
