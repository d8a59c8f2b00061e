import { randomUUID } from 'node:crypto';
import { type DescMessage, type Message, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { alreadyExists, notFound, precondition } from '../base/errors.ts';
import { depthOf, MAX_DEPTH, ROOT } from '../base/uid.ts';
import { together } from '../store/await-all.ts';
import type { Insertion } from '../store/bulk-insert.ts';
import type { Maybe, Transaction, Value } from '../store/store.ts';
import type { Place, Resource, State, Stored, UniqueKey } from './definition.ts';
import { compareText } from './list-membership.ts';
import { type Change, relist } from './listing-index.ts';
import { exists } from './read.ts';

const RESOURCES: Insertion = {
  into: 'resource',
  columns: {
    ...{ kind: 'text', uid: 'text', parent: 'text', created: 'integer', updated: 'integer' },
    ...{ keys: 'json', body: 'blob', state: 'text' },
  },
  conflict: 'skip',
  returning: ['uid'],
};
const UPDATE = 'UPDATE resource SET updated = $3, keys = $4, body = $5, state = $6 WHERE kind = $1 AND uid = $2';
const DELETE = 'DELETE FROM resource WHERE kind = $1 AND uid = $2';
const KEYS: Insertion = {
  into: 'natural_key',
  columns: { kind: 'text', key: 'text', uid: 'text' },
  conflict: 'skip',
  returning: ['key'],
};
const FREE_KEY = 'DELETE FROM natural_key WHERE kind = $1 AND key = $2 AND uid = $3';
const REFERENCES: Insertion = {
  into: 'reference',
  columns: { kind: 'text', field: 'text', value: 'text', uid: 'text' },
};
const DROP_REFERENCE = 'DELETE FROM reference WHERE kind = $1 AND field = $2 AND value = $3 AND uid = $4';
const CHANGE_ACCESS = `INSERT INTO setting (key, value) VALUES ($1, $2)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`;

/** The setting that differs after every change of who may do what. */
export const ACCESS_VERSION = 'access.version';

/** Refuses a parent that does not exist, and keeps it from being deleted until the transaction ends. */
export async function holdParent(
  tx: Transaction,
  resource: Resource,
  parent: string,
  lock = tx.lock.share,
): Promise<void> {
  if (parent === ROOT && resource.parents.includes(ROOT)) return;
  if (depthOf(parent) >= MAX_DEPTH) {
    throw precondition('HIERARCHY_TOO_DEEP', parent, `resources can be nested at most ${MAX_DEPTH} levels deep`);
  }
  const kinds = resource.parents.filter((kind) => kind !== ROOT);
  for (const kind of kinds) if (await exists(tx, kind, parent, lock)) return;
  throw notFound(kinds[0] ?? 'parent', parent);
}

export interface Draft<S extends DescMessage> extends Place {
  readonly message: MessageShape<S>;
  readonly state?: State | undefined;
  /** When it came to be, where that was before it came here. */
  readonly created?: number;
}

/** Stores a new resource with its uid and times, its keys, references and places in the listing index. */
export async function insert<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  draft: Draft<S>,
  now: number,
): Promise<Stored> {
  const [stored] = await insertAll(tx, resource, [draft], now);
  return stored as Stored;
}

/** Stores many at once, which costs much less than one by one. */
export async function insertAll<S extends DescMessage>(
  tx: Transaction,
  resource: Resource<S>,
  drafts: readonly Draft<S>[],
  now: number,
): Promise<Stored[]> {
  const rows: Value[] = [];
  const all = drafts.map(({ uid, parent, state, created = now, ...draft }): Stored => {
    const message: Message = Object.assign(draft.message, { uid });
    stamp(resource, message, 'createTime', created);
    stamp(resource, message, 'updateTime', now);
    const stored: Stored = { uid, parent, created, updated: now, message, state };
    rows.push(resource.kind, uid, parent, created, now, ...columnsOf(resource, stored));
    return stored;
  });
  await together(
    insertNew(tx, resource, all, rows),
    change(
      tx,
      resource,
      all.map((after) => ({ uid: after.uid, after })),
    ),
  );
  return all;
}

async function insertNew(tx: Transaction, { kind }: Resource, all: readonly Stored[], rows: Value[]): Promise<void> {
  const added = new Set((await tx.insert<{ uid: string }>(RESOURCES, rows)).map(({ uid }) => uid));
  // Random uids never meet; those that follow from something else may.
  const there = all.find(({ uid }) => !added.has(uid));
  if (there) throw alreadyExists(kind, there.uid, `there is a ${kind} ${there.uid} already`);
}

/** Stores what `message` and `state` have become. */
export async function update(
  tx: Transaction,
  resource: Resource,
  before: Stored,
  after: Pick<Stored, 'message' | 'state'>,
  now: number,
): Promise<Stored> {
  const [stored] = await updateAll(tx, resource, [{ before, ...after }], now);
  return stored as Stored;
}

/** The same for many at once. Without a `state` it stays what it was. */
export async function updateAll(
  tx: Transaction,
  resource: Resource,
  updates: readonly { readonly before: Stored; readonly message: Message; readonly state?: State | undefined }[],
  now: number,
): Promise<Stored[]> {
  const changes: (Change & { readonly after: Stored })[] = [];
  for (const { before, ...after } of updates) {
    // Never earlier than before, even when the clock was set back.
    const updated = Math.max(now, before.updated);
    stamp(resource, after.message, 'updateTime', updated);
    const stored: Stored = { ...before, ...after, updated };
    tx.post(UPDATE, resource.kind, stored.uid, updated, ...columnsOf(resource, stored));
    changes.push({ uid: stored.uid, before, after: stored });
  }
  await change(tx, resource, changes);
  return changes.map(({ after }) => after);
}

export async function remove(tx: Transaction, resource: Resource, stored: Stored): Promise<void> {
  tx.post(DELETE, resource.kind, stored.uid);
  await change(tx, resource, [{ uid: stored.uid, before: stored }]);
}

/** keys, body, state */
function columnsOf(resource: Resource, stored: Stored): [string, Uint8Array, string | null] {
  const keys = Object.fromEntries(Object.entries(resource.sortKeys).map(([field, keyOf]) => [field, keyOf(stored)]));
  return [
    JSON.stringify(keys),
    toBinary(resource.schema, stored.message),
    stored.state === undefined ? null : JSON.stringify(stored.state),
  ];
}

function stamp(resource: Resource, message: Message, field: 'createTime' | 'updateTime', ms: number): void {
  if (field in resource.schema.field) Object.assign(message, { [field]: timestampFromMs(ms) });
}

/** Brings keys, references and the listing index from what they were to what they must be. */
async function change(tx: Transaction, resource: Resource, changes: readonly Change[]): Promise<void> {
  const isNew = changes.every(({ before }) => before === undefined);
  if (resource.grantsAccess && !(isNew && resource.grantsAccess === 'unless new')) changeAccess(tx);
  changeReferences(tx, resource, changes);
  await together(changeKeys(tx, resource, changes), relist(tx, resource, changes));
}

/** Lets nobody go on with what they knew about who may do what. */
export const changeAccess = (tx: Transaction): void => tx.post(CHANGE_ACCESS, ACCESS_VERSION, randomUUID());

export const freeKey = (tx: Transaction, resource: Resource, key: string, uid: string): Maybe<number> =>
  tx.run(FREE_KEY, resource.kind, key, uid);

async function changeKeys(tx: Transaction, resource: Resource, changes: readonly Change[]): Promise<void> {
  const { kind, unique } = resource;
  if (!unique) return;
  const keysOf = (stored?: Stored) => (stored ? unique(stored.message as never, stored.parent) : []);
  const claimed: (UniqueKey & { readonly uid: string })[] = [];
  for (const { uid, before, after } of changes) {
    const [old, wanted] = [keysOf(before), keysOf(after)];
    for (const { key } of old) {
      if (!wanted.some((w) => w.key === key)) await freeKey(tx, resource, key, uid);
    }
    for (const claim of wanted) {
      if (old.some((o) => o.key === claim.key)) continue;
      claimed.push({ ...claim, uid });
    }
  }
  // In the order of the index, as all that is inserted: see relist. It also keeps two claims from waiting for each other.
  const rows = claimed.sort((a, b) => compareText(a.key, b.key)).flatMap(({ key, uid }) => [kind, key, uid]);
  const granted = new Set((await tx.insert<{ key: string }>(KEYS, rows)).map(({ key }) => key));
  // Taken by somebody else, or claimed twice here.
  const refused = claimed.find(({ key }) => !granted.delete(key));
  if (refused) throw alreadyExists(kind, refused.key, refused.taken);
}

function changeReferences(tx: Transaction, resource: Resource, changes: readonly Change[]): void {
  const rows: string[] = [];
  for (const field of Object.keys(resource.references ?? {})) {
    const added: [value: string, uid: string][] = [];
    const valuesOf = (stored?: Stored) => new Set(stored && resource.values[field]?.(stored.message));
    for (const { uid, before, after } of changes) {
      const [old, wanted] = [valuesOf(before), valuesOf(after)];
      for (const value of old.difference(wanted)) tx.post(DROP_REFERENCE, resource.kind, field, value, uid);
      for (const value of wanted.difference(old)) added.push([value, uid]);
    }
    added.sort(([a], [b]) => compareText(a, b));
    for (const [value, uid] of added) rows.push(resource.kind, field, value, uid);
  }
  tx.postRows(REFERENCES, rows);
}
