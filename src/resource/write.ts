import { type DescMessage, type Message, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { alreadyExists } from '../base/errors.ts';
import { rootOf, type Uid } from '../base/uid.ts';
import { awaitAll } from '../store/await-all.ts';
import type { BulkInsert } from '../store/bulk-insert.ts';
import type { Transaction, Value } from '../store/store.ts';
import { bumpAccessVersion } from './access-version.ts';
import type { NewResource, Resource, State, Stored } from './definition.ts';
import { type BuildInProgress, findBuildInProgress, findMarked } from './index/build-in-progress.ts';
import { updateReferences, updateUniqueKeys } from './keys-and-references.ts';
import { type Change, type PartlyBuilt, updateListingIndex } from './listing-index.ts';

// Stores resources with everything that is derived from them: unique keys, references, the listing index.

const RESOURCES: BulkInsert = {
  into: 'resource',
  columns: {
    ...{ kind: 'text', uid: 'text', parent: 'text', created: 'integer', updated: 'integer' },
    ...{ keys: 'json', body: 'blob', state: 'text' },
  },
  conflict: 'skip',
  returning: ['uid'],
};
/** With the generation of a listing index that is being built. */
const MARKED_RESOURCES: BulkInsert = { ...RESOURCES, columns: { ...RESOURCES.columns, indexed: 'integer' } };
const UPDATE = 'UPDATE resource SET updated = $3, keys = $4, body = $5, state = $6 WHERE kind = $1 AND uid = $2';
const DELETE = 'DELETE FROM resource WHERE kind = $1 AND uid = $2';

export interface Draft<M extends Message> extends NewResource {
  readonly message: M;
  readonly state?: State | undefined;
  /** The create time, if it is not now: an import may bring an older one. */
  readonly created?: number;
}

/** Stores a new resource. Its uid and times are set here. */
export async function insert<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  draft: Draft<MessageShape<S>>,
  now: number,
): Promise<Stored<MessageShape<S>>> {
  const [stored] = await insertAll(tx, resource, [draft], now);
  return stored as Stored<MessageShape<S>>;
}

/** Stores many new resources of one kind, in a few statements. */
export async function insertAll<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  drafts: readonly Draft<MessageShape<S>>[],
  now: number,
): Promise<Stored<MessageShape<S>>[]> {
  for (const { uid } of tx.quotas ? drafts : []) tx.quotas?.requireNotFull(rootOf(uid), resource.kind);
  const building = findBuildInProgress(tx, resource);
  const build = building && (await building);
  const mark = build?.isBuilding ? [build.generation] : [];
  const rows: Value[] = [];
  const all = drafts.map(({ uid, parent, state, created = now, ...draft }): Stored<MessageShape<S>> => {
    const message = Object.assign(draft.message, { uid });
    setTime(resource, message, 'createTime', created);
    setTime(resource, message, 'updateTime', now);
    const stored = { uid, parent, created, updated: now, message, state };
    rows.push(resource.kind, uid, parent, created, now, ...columnsOf(resource, stored), ...mark);
    return stored;
  });
  const changes = all.map((after) => ({ uid: after.uid, after }));
  const partlyBuilt = build && { missing: build.missing, isIndexed: () => build.isBuilding };
  const into = build?.isBuilding ? MARKED_RESOURCES : RESOURCES;
  await awaitAll(insertRows(tx, resource, all, into, rows), updateDerived(tx, resource, changes, partlyBuilt));
  return all;
}

async function insertRows(
  tx: Transaction,
  { kind }: Resource,
  all: readonly Stored[],
  into: BulkInsert,
  rows: Value[],
): Promise<void> {
  const inserted = new Set((await tx.insert<{ uid: Uid }>(into, rows)).map(({ uid }) => uid));
  // Random uids never collide, but some uids are derived from other data.
  const existing = all.find(({ uid }) => !inserted.has(uid));
  if (existing) throw alreadyExists(kind, existing.uid, `there is a ${kind} ${existing.uid} already`);
}

/** Stores the new message and state of a resource. */
export async function update<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  before: Stored<MessageShape<S>>,
  after: Pick<Stored<MessageShape<S>>, 'message' | 'state'>,
  now: number,
): Promise<Stored<MessageShape<S>>> {
  const [stored] = await updateAll(tx, resource, [{ before, ...after }], now);
  return stored as Stored<MessageShape<S>>;
}

export interface Update<M extends Message> {
  readonly before: Stored<M>;
  readonly message: M;
  /** Unchanged when absent. */
  readonly state?: State | undefined;
}

/** Stores the new messages and states of many resources of one kind. */
export async function updateAll<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  updates: readonly Update<MessageShape<S>>[],
  now: number,
): Promise<Stored<MessageShape<S>>[]> {
  const stored = updates.map(({ before, ...after }): Stored<MessageShape<S>> => {
    // Never earlier than before, even when the clock was set back.
    const updated = Math.max(now, before.updated);
    setTime(resource, after.message, 'updateTime', updated);
    return { ...before, ...after, updated };
  });
  const building = findBuildInProgress(tx, resource);
  const build = building && (await building);
  const partlyBuilt = build && (await partlyBuiltFor(tx, resource, build, stored));
  for (const each of stored) {
    tx.runUnawaited(UPDATE, resource.kind, each.uid, each.updated, ...columnsOf(resource, each));
  }
  const changes = stored.map((after, at) => ({ uid: after.uid, before: updates[at]?.before as Stored, after }));
  await updateDerived(tx, resource, changes, partlyBuilt);
  return stored;
}

async function partlyBuiltFor(
  tx: Transaction,
  resource: Resource,
  build: BuildInProgress,
  changed: readonly Stored[],
): Promise<PartlyBuilt> {
  const uids = changed.map(({ uid }) => uid);
  const marked = await findMarked(tx, resource, build, uids);
  return { missing: build.missing, isIndexed: (uid) => marked.has(uid) };
}

/** Deletes one resource. It must have no children (see delete.ts). */
export async function deleteOne(tx: Transaction, resource: Resource, stored: Stored): Promise<void> {
  const building = findBuildInProgress(tx, resource);
  const build = building && (await building);
  const partlyBuilt = build && (await partlyBuiltFor(tx, resource, build, [stored]));
  tx.runUnawaited(DELETE, resource.kind, stored.uid);
  await updateDerived(tx, resource, [{ uid: stored.uid, before: stored }], partlyBuilt);
}

/** Updates everything that the store derives from the resources of `changes`. */
async function updateDerived(
  tx: Transaction,
  resource: Resource,
  changes: readonly Change[],
  partlyBuilt: PartlyBuilt | undefined,
): Promise<void> {
  const isNew = changes.every(({ before }) => before === undefined);
  if (resource.grantsAccess && !(isNew && resource.grantsAccess === 'unless new')) bumpAccessVersion(tx);
  updateReferences(tx, resource, changes);
  await awaitAll(updateUniqueKeys(tx, resource, changes), updateListingIndex(tx, resource, changes, partlyBuilt));
}

/** The values of the columns keys, body and state. */
function columnsOf(resource: Resource, stored: Stored): [string, Uint8Array, string | null] {
  const keys = Object.fromEntries(
    Object.entries(resource.storedSortKeys).map(([field, keyOf]) => [field, keyOf(stored)]),
  );
  return [
    JSON.stringify(keys),
    toBinary(resource.schema, stored.message),
    stored.state === undefined ? null : JSON.stringify(stored.state),
  ];
}

/** The value of the column keys. */
export const sortKeysJson = ({ storedSortKeys }: Resource, stored: Stored): string =>
  JSON.stringify(Object.fromEntries(Object.entries(storedSortKeys).map(([order, keyOf]) => [order, keyOf(stored)])));

function setTime(resource: Resource, message: Message, field: 'createTime' | 'updateTime', ms: number): void {
  if (field in resource.schema.field) Object.assign(message, { [field]: timestampFromMs(ms) });
}
