import { fromBinary, type Message } from '@bufbuild/protobuf';
import { rangeBelow } from '../base/uid.ts';
import { isKept, readKept, readToKeep } from '../contract/message-cache.ts';
import { eachSlot, inBatches } from '../store/parameter-batches.ts';
import { pointRead } from '../store/point-read.ts';
import type { Maybe, Reader, Row } from '../store/store.ts';
import type { Resource, State, Stored } from './definition.ts';

export interface ResourceRow extends Row {
  readonly uid: string;
  readonly parent: string;
  readonly created: number;
  readonly updated: number;
  readonly body: Uint8Array;
  readonly state: string | null;
}

const COLUMNS = ['uid', 'parent', 'created', 'updated', 'body', 'state'];
const BY_UID = { from: 'resource', key: ['kind', 'uid'] };
const FIND = pointRead({ columns: COLUMNS, ...BY_UID });
const FIND_CHILDREN = `SELECT ${COLUMNS.join(', ')} FROM resource WHERE kind = $1 AND parent = $2 ORDER BY uid`;
const EXISTS = pointRead({ columns: ['uid'], ...BY_UID });
const FIND_BODY = pointRead({ columns: ['body'], ...BY_UID });
const FIND_BY_KEY = pointRead({ columns: ['uid'], from: 'natural_key', key: ['kind', 'key'] });
const FIND_REFERRING = 'SELECT uid FROM reference WHERE kind = $1 AND field = $2 AND value = $3 ORDER BY uid';
const FIND_REFERRING_BELOW = `SELECT uid FROM reference
  WHERE kind = $1 AND field = $2 AND value = $3 AND uid > $4 AND uid < $5 ORDER BY uid`;

/** With `lock`, holds the row until the transaction ends. */
export async function find(db: Reader, resource: Resource, uid: string, lock = ''): Promise<Stored | undefined> {
  const row = await db.get<ResourceRow>(FIND + lock, resource.kind, uid);
  return row && toStored(resource, row);
}

/** With `lock`, keeps it from being deleted until the transaction ends. */
export const exists = async (db: Reader, kind: string, uid: string, lock = ''): Promise<boolean> =>
  (await db.get(EXISTS + lock, kind, uid)) !== undefined;

/** Whether a message of this resource is changed before it is shown. */
export const mayChange = ({ present, presents }: Resource, message: Message): boolean =>
  present !== undefined && (presents?.(message as never) ?? true);

/** A stored message to be shown: shared with others who are shown the same, unless it is going to be changed. */
export function findShown(db: Reader, resource: Resource, uid: string): Maybe<Message | undefined> {
  const known = db.memory?.recall(resource.kind, uid);
  if (known !== undefined) return known as Message;
  const mark = db.memory?.mark();
  const row = db.get<{ body: Uint8Array }>(FIND_BODY, resource.kind, uid);
  if (row instanceof Promise) return row.then((found) => found && readShown(db, resource, uid, found.body, mark));
  return row && readShown(db, resource, uid, row.body, mark);
}

/** The same for many, in their order; without those that do not exist. For a database with a memory. */
export function findShownAll(db: Reader, resource: Resource, uids: readonly string[]): Maybe<Message[]> {
  const mark = db.memory?.mark();
  const known = uids.map((uid) => db.memory?.recall(resource.kind, uid) as Message | undefined);
  return known.includes(undefined) ? withUnknown(db, resource, uids, known, mark) : (known as Message[]);
}

async function withUnknown(
  db: Reader,
  resource: Resource,
  uids: readonly string[],
  known: readonly (Message | undefined)[],
  mark: number | undefined,
): Promise<Message[]> {
  const found = new Map<string, Message>();
  for (const some of inBatches(uids.filter((_, at) => known[at] === undefined))) {
    const rows = await db.all<{ uid: string; body: Uint8Array }>(FIND_BODIES, resource.kind, ...some);
    for (const { uid, body } of rows) found.set(uid, readShown(db, resource, uid, body, mark));
  }
  return uids.flatMap((uid, at) => known[at] ?? found.get(uid) ?? []);
}

/** The message in a row that was read after `mark`. */
export function readShown(db: Reader, resource: Resource, uid: string, body: Uint8Array, mark?: number): Message {
  if (resource.present && !resource.presents) return fromBinary(resource.schema, body);
  const { memory } = db;
  const message = memory ? readToKeep(resource.schema, body) : readKept(resource.schema, uid, body);
  if (mayChange(resource, message)) return fromBinary(resource.schema, body);
  if (mark !== undefined && isKept(message)) memory?.keep(mark, resource.kind, uid, message);
  return message;
}

export async function findChildren(db: Reader, resource: Resource, parent: string): Promise<Stored[]> {
  return (await db.all<ResourceRow>(FIND_CHILDREN, resource.kind, parent)).map((row) => toStored(resource, row));
}

/** The uid under a unique key, such as a name under its parent. */
export async function findByKey(db: Reader, resource: Resource, key: string): Promise<string | undefined> {
  return (await db.get<{ uid: string }>(FIND_BY_KEY, resource.kind, key))?.uid;
}

/** The same for many keys, as far as they are in use. */
export async function findByKeys(
  db: Reader,
  resource: Resource,
  keys: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const some of inBatches(keys)) {
    const rows = await db.all<{ key: string; uid: string }>(FIND_BY_KEY_BATCH, resource.kind, ...some);
    for (const { key, uid } of rows) found.set(key, uid);
  }
  return found;
}

/** The uids whose declared reference `field` has `value`. */
export async function findReferring(db: Reader, resource: Resource, field: string, value: string): Promise<string[]> {
  return (await db.all<{ uid: string }>(FIND_REFERRING, resource.kind, field, value)).map((row) => row.uid);
}

/** The same, of those below `ancestor` only. */
export async function findReferringBelow(
  db: Reader,
  resource: Resource,
  field: string,
  value: string,
  ancestor: string,
): Promise<string[]> {
  const rows = await db.all<{ uid: string }>(
    FIND_REFERRING_BELOW,
    resource.kind,
    field,
    value,
    ...rangeBelow(ancestor),
  );
  return rows.map((row) => row.uid);
}

/** The uids whose declared reference `field` has any of `values`. */
export async function findUidsReferringAny(
  db: Reader,
  resource: Resource,
  field: string,
  values: readonly string[],
): Promise<string[]> {
  const uids = new Set<string>();
  for (const some of inBatches(values)) {
    const rows = await db.all<{ uid: string }>(FIND_REFERRING_BATCH, resource.kind, field, ...some);
    for (const { uid } of rows) uids.add(uid);
  }
  return [...uids];
}

/** The resources themselves. */
export const findReferringAny = async (
  db: Reader,
  resource: Resource,
  field: string,
  values: readonly string[],
): Promise<Stored[]> => findAll(db, resource, await findUidsReferringAny(db, resource, field, values));

/** Those of `uids` that exist, in the order of their uids. With `lock`, holds them until the transaction ends. */
export async function findAll(
  db: Reader,
  resource: Resource,
  uids: readonly string[],
  lock = '',
): Promise<(Stored & { readonly body: Uint8Array })[]> {
  const found: (Stored & { body: Uint8Array })[] = [];
  for (const some of inBatches(uids)) {
    const rows = await db.all<ResourceRow>(FIND_BATCH + lock, resource.kind, ...some);
    for (const row of rows) found.push({ ...toStored(resource, row), body: row.body });
  }
  return found;
}

const FIND_BATCH = `SELECT ${COLUMNS.join(', ')} FROM resource WHERE kind = $1 AND uid IN (${eachSlot(2)}) ORDER BY uid`;
const FIND_BODIES = `SELECT uid, body FROM resource WHERE kind = $1 AND uid IN (${eachSlot(2)})`;
const FIND_BY_KEY_BATCH = `SELECT key, uid FROM natural_key WHERE kind = $1 AND key IN (${eachSlot(2)})`;
const FIND_REFERRING_BATCH = `SELECT uid FROM reference WHERE kind = $1 AND field = $2 AND value IN (${eachSlot(3)})`;

function toStored(resource: Resource, row: ResourceRow): Stored {
  return {
    uid: row.uid,
    parent: row.parent,
    created: row.created,
    updated: row.updated,
    message: fromBinary(resource.schema, row.body),
    state: row.state === null ? undefined : (JSON.parse(row.state) as State),
  };
}
