import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { Transaction } from '../store/store.ts';
import type { Resource, Stored } from './definition.ts';
import { findAll, findByKeys } from './read.ts';
import { type Draft, holdParent, insertAll, updateAll } from './write.ts';

/** `elsewhere`: the key belongs to a resource under another parent, which was left alone. */
export type PutResult = 'created' | 'updated' | 'unchanged' | 'elsewhere';

/** What a resource is to become. */
export interface Wanted<S extends DescMessage> {
  /** The unique key that tells which resource it is. */
  readonly key: string;
  /** The uid in case it is new. */
  newUid(): string;
  /** The new message, given what it was; asked again when that has changed meanwhile, so it must have no other effect. */
  become(uid: string, known: MessageShape<S> | undefined): MessageShape<S>;
}

/**
 * Creates or changes many resources of one parent, each found by its unique key. One that is to become what it is stays
 * untouched, down to its times. Puts under one parent wait for each other.
 */
export async function putAll<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  parent: string,
  wanted: readonly Wanted<S>[],
  now: number,
): Promise<PutResult[]> {
  await holdParent(tx, resource, parent, tx.lock.update);
  const known = await findKnown(
    tx,
    resource,
    wanted.map(({ key }) => key),
  );
  let changes = planChanges(resource, parent, wanted, known);
  const touched = [...changes.updates.keys()];
  // Only what will change is worth a lock, and others may have been faster: then think again.
  if (touched.length > 0 && tx.lock.update !== '') {
    await refresh(tx, resource, known, touched);
    changes = planChanges(resource, parent, wanted, known);
  }
  await insertAll(tx, resource, [...changes.drafts.values()], now);
  await updateAll(tx, resource, [...changes.updates.values()], now);
  return changes.results;
}

/** A stored resource with its message as it is stored. */
type Known = Stored & { readonly body: Uint8Array };

/** Those that are there already, by key. */
export async function findKnown(
  tx: Transaction,
  resource: Resource,
  keys: readonly string[],
): Promise<Map<string, Known>> {
  const uids = await findByKeys(tx, resource, keys);
  const stored = new Map((await findAll(tx, resource, [...uids.values()])).map((each) => [each.uid, each]));
  const known = new Map<string, Known>();
  for (const [key, uid] of uids) {
    const found = stored.get(uid);
    if (found) known.set(key, found);
  }
  return known;
}

/** Reads those of `known` that will change once more, and keeps others from changing them. */
async function refresh(
  tx: Transaction,
  resource: Resource,
  known: Map<string, Known>,
  keys: readonly string[],
): Promise<void> {
  const uids = keys.map((key) => known.get(key)?.uid ?? '').sort();
  const stored = new Map((await findAll(tx, resource, uids, tx.lock.update)).map((each) => [each.uid, each]));
  for (const key of keys) {
    const found = stored.get(known.get(key)?.uid ?? '');
    if (found) known.set(key, found);
    else known.delete(key);
  }
}

interface Changes<S extends DescMessage> {
  readonly results: PutResult[];
  readonly drafts: Map<string, Draft<S>>;
  readonly updates: Map<string, { before: Stored; message: MessageShape<S> }>;
}

/** What must be written. A key that comes twice is changed twice, and written once. */
function planChanges<S extends DescMessage>(
  resource: Resource<S>,
  parent: string,
  wanted: readonly Wanted<S>[],
  known: ReadonlyMap<string, Known>,
): Changes<S> {
  const drafts: Changes<S>['drafts'] = new Map();
  const updates: Changes<S>['updates'] = new Map();
  const encode = (message: MessageShape<S>): Uint8Array => toBinary(resource.schema, message);
  const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

  const results = wanted.map(({ key, newUid, become }): PutResult => {
    const draft = drafts.get(key);
    if (draft) {
      const message = become(draft.uid, draft.message);
      if (isSame(encode(message), encode(draft.message))) return 'unchanged';
      drafts.set(key, { ...draft, message });
      return 'updated';
    }
    const before = known.get(key);
    if (!before) {
      const uid = newUid();
      drafts.set(key, { message: become(uid, undefined), uid, parent });
      return 'created';
    }
    if (before.parent !== parent) return 'elsewhere';
    const earlier = updates.get(key);
    const message = become(before.uid, earlier?.message ?? (before.message as MessageShape<S>));
    if (isSame(encode(message), earlier ? encode(earlier.message) : before.body)) return 'unchanged';
    updates.set(key, { before, message });
    return 'updated';
  });
  return { results, drafts, updates };
}
