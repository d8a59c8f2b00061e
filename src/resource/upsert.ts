import { type DescMessage, type Message, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { Uid } from '../base/uid.ts';
import type { Transaction } from '../store/store.ts';
import type { Resource } from './definition.ts';
import { requireParent } from './parent.ts';
import { findAll, findByKeys, type StoredWithBody } from './read.ts';
import { type Draft, insertAll, type Update, updateAll } from './write.ts';

/** `elsewhere`: a resource under another parent has the key. It was not changed. */
export type UpsertResult = 'created' | 'updated' | 'unchanged' | 'elsewhere';

/** A resource to create, or to change if its key exists. */
export interface Upsert<M extends Message> {
  /** The unique key that identifies the resource. */
  readonly key: string;
  /** The uid in case it is new, under `parent`. */
  newUid(parent: Uid): Uid;
  /** The new message, given the existing one. May be called again after a conflict, so it must have no side effect. */
  merge(uid: Uid, existing: M | undefined): M;
}

/**
 * Creates or changes many resources of one parent, each identified by its unique key. A resource whose message does not
 * change keeps its times. Upserts under one parent run one after the other.
 */
export async function upsertAll<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  requestedParent: string,
  upserts: readonly Upsert<MessageShape<S>>[],
  now: number,
): Promise<UpsertResult[]> {
  const parent = await requireParent(tx.forUpdate, resource, requestedParent);
  const existing = await findExisting(
    tx,
    resource,
    upserts.map(({ key }) => key),
  );
  let changes = planChanges(resource, parent, upserts, existing);
  const touched = [...changes.updates.keys()];
  // Only resources that will change are locked. They may have changed since they were read, so the plan is made again.
  if (touched.length > 0 && !tx.isOnlyWriter) {
    await lockAndReread(tx, resource, existing, touched);
    changes = planChanges(resource, parent, upserts, existing);
  }
  await insertAll(tx, resource, [...changes.drafts.values()], now);
  await updateAll(tx, resource, [...changes.updates.values()], now);
  return changes.results;
}

/** The resources that have these unique keys, by key. */
export async function findExisting<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  keys: readonly string[],
): Promise<Map<string, StoredWithBody<MessageShape<S>>>> {
  const uids = await findByKeys(tx, resource, keys);
  const stored = new Map((await findAll(tx, resource, [...uids.values()])).map((each) => [each.uid, each]));
  const existing = new Map<string, StoredWithBody<MessageShape<S>>>();
  for (const [key, uid] of uids) {
    const found = stored.get(uid);
    if (found) existing.set(key, found);
  }
  return existing;
}

/** Locks the resources under `keys` and replaces them in `existing` by their current versions. */
async function lockAndReread<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  existing: Map<string, StoredWithBody<MessageShape<S>>>,
  keys: readonly string[],
): Promise<void> {
  const uids = keys.map((key) => existing.get(key)?.uid ?? '').sort();
  const stored = new Map<string, StoredWithBody<MessageShape<S>>>(
    (await findAll(tx.forUpdate, resource, uids)).map((each) => [each.uid, each]),
  );
  for (const key of keys) {
    const found = stored.get(existing.get(key)?.uid ?? '');
    if (found) existing.set(key, found);
    else existing.delete(key);
  }
}

interface PlannedChanges<M extends Message> {
  readonly results: UpsertResult[];
  readonly drafts: Map<string, Draft<M>>;
  readonly updates: Map<string, Update<M>>;
}

/** What must be written. A key that comes twice is merged twice and written once. */
function planChanges<S extends DescMessage>(
  resource: Resource<S>,
  parent: Uid,
  upserts: readonly Upsert<MessageShape<S>>[],
  existing: ReadonlyMap<string, StoredWithBody<MessageShape<S>>>,
): PlannedChanges<MessageShape<S>> {
  const drafts: PlannedChanges<MessageShape<S>>['drafts'] = new Map();
  const updates: PlannedChanges<MessageShape<S>>['updates'] = new Map();
  const encode = (message: MessageShape<S>): Uint8Array => toBinary(resource.schema, message);
  const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

  const results = upserts.map(({ key, newUid, merge }): UpsertResult => {
    const draft = drafts.get(key);
    if (draft) {
      const message = merge(draft.uid, draft.message);
      if (isSame(encode(message), encode(draft.message))) return 'unchanged';
      drafts.set(key, { ...draft, message });
      return 'updated';
    }
    const before = existing.get(key);
    if (!before) {
      const uid = newUid(parent);
      drafts.set(key, { message: merge(uid, undefined), uid, parent });
      return 'created';
    }
    if (before.parent !== parent) return 'elsewhere';
    const earlier = updates.get(key);
    const message = merge(before.uid, earlier?.message ?? before.message);
    if (isSame(encode(message), earlier ? encode(earlier.message) : before.body)) return 'unchanged';
    updates.set(key, { before, message });
    return 'updated';
  });
  return { results, drafts, updates };
}
