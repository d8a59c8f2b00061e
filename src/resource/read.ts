import { type DescMessage, fromBinary, type Message, type MessageShape } from '@bufbuild/protobuf';
import { descendantRange, type ParentUid, type Uid } from '../base/uid.ts';
import { batchPlaceholders, parameterBatches } from '../store/parameter-batches.ts';
import { pointRead } from '../store/point-read.ts';
import type { Reader, Row } from '../store/store.ts';
import type { Resource, State, Stored } from './definition.ts';

// To lock what is found, pass `tx.forShare` or `tx.forUpdate` as `db`.

export interface ResourceRow extends Row {
  readonly uid: Uid;
  readonly parent: ParentUid;
  readonly created: number;
  readonly updated: number;
  readonly body: Uint8Array;
  readonly state: string | null;
}

export const COLUMNS = ['uid', 'parent', 'created', 'updated', 'body', 'state'];
const BY_UID = { from: 'resource', key: ['kind', 'uid'] };
const FIND = pointRead({ columns: COLUMNS, ...BY_UID });
const FIND_CHILDREN = `SELECT ${COLUMNS.join(', ')} FROM resource WHERE kind = $1 AND parent = $2 ORDER BY uid`;
const FIND_UID = pointRead({ columns: ['uid'], ...BY_UID });
const FIND_BY_KEY = pointRead({ columns: ['uid'], from: 'natural_key', key: ['kind', 'key'] });
const FIND_REFERRING = 'SELECT uid FROM reference WHERE kind = $1 AND field = $2 AND value = $3 ORDER BY uid';
const FIND_REFERRING_BELOW = `SELECT uid FROM reference
  WHERE kind = $1 AND field = $2 AND value = $3 AND uid > $4 AND uid < $5 ORDER BY uid`;
const FIND_REFERRING_BELOW_AT = `SELECT uid FROM reference
  WHERE kind = $1 AND field = $2 AND value = $3 AND uid > $4 AND uid < $5 AND uid <> $6 LIMIT 1 OFFSET $7`;

export async function find<S extends DescMessage>(
  db: Reader,
  resource: Pick<Resource<S>, 'kind' | 'schema'>,
  uid: string,
): Promise<Stored<MessageShape<S>> | undefined> {
  const row = await db.get<ResourceRow>(FIND, resource.kind, uid);
  return row && toStored(resource, row);
}

/** The uid as the database has it; undefined when no resource of this kind has it. */
export const findUid = async (db: Reader, kind: string, uid: string): Promise<Uid | undefined> =>
  (await db.get<{ uid: Uid }>(FIND_UID, kind, uid))?.uid;

export const exists = async (db: Reader, kind: string, uid: string): Promise<boolean> =>
  (await db.get(FIND_UID, kind, uid)) !== undefined;

export async function findChildren<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  parent: string,
): Promise<Stored<MessageShape<S>>[]> {
  return (await db.all<ResourceRow>(FIND_CHILDREN, resource.kind, parent)).map((row) => toStored(resource, row));
}

/** The uid under a unique key, such as a name under its parent. */
export async function findByKey(db: Reader, resource: Resource, key: string): Promise<Uid | undefined> {
  return (await db.get<{ uid: Uid }>(FIND_BY_KEY, resource.kind, key))?.uid;
}

/** The uids under many keys, by key. Keys that are not in use are left out. */
export async function findByKeys(
  db: Reader,
  resource: Resource,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Uid>> {
  const found = new Map<string, Uid>();
  for (const some of parameterBatches(keys)) {
    const rows = await db.all<{ key: string; uid: Uid }>(FIND_BY_KEY_BATCH, resource.kind, ...some);
    for (const { key, uid } of rows) found.set(key, uid);
  }
  return found;
}

/** The uids whose declared reference `field` has `value`. */
export async function findReferring(db: Reader, resource: Resource, field: string, value: string): Promise<Uid[]> {
  return (await db.all<{ uid: Uid }>(FIND_REFERRING, resource.kind, field, value)).map((row) => row.uid);
}

/**
 * Whether at least `count` resources below `ancestor` refer to `value`, without `except`. Cheaper than finding them, because
 * the database skips the rows.
 */
export async function areReferringBelow(
  db: Reader,
  resource: Resource,
  [field, value]: readonly [field: string, value: string],
  ancestor: string,
  count: number,
  except = '',
): Promise<boolean> {
  const range = descendantRange(ancestor);
  const row = await db.get(FIND_REFERRING_BELOW_AT, resource.kind, field, value, ...range, except, count - 1);
  return row !== undefined;
}

/** The same as `findReferring`, of those below `ancestor` only. */
export async function findReferringBelow(
  db: Reader,
  resource: Resource,
  field: string,
  value: string,
  ancestor: string,
): Promise<Uid[]> {
  const rows = await db.all<{ uid: Uid }>(
    FIND_REFERRING_BELOW,
    resource.kind,
    field,
    value,
    ...descendantRange(ancestor),
  );
  return rows.map((row) => row.uid);
}

/** The uids whose declared reference `field` has any of `values`. */
export async function findUidsReferringAny(
  db: Reader,
  resource: Resource,
  field: string,
  values: readonly string[],
): Promise<Uid[]> {
  const uids = new Set<Uid>();
  for (const some of parameterBatches(values)) {
    const rows = await db.all<{ uid: Uid }>(FIND_REFERRING_BATCH, resource.kind, field, ...some);
    for (const { uid } of rows) uids.add(uid);
  }
  return [...uids];
}

/** The resources whose declared reference `field` has any of `values`. */
export const findReferringAny = async <S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  field: string,
  values: readonly string[],
): Promise<Stored<MessageShape<S>>[]> => findAll(db, resource, await findUidsReferringAny(db, resource, field, values));

export type StoredWithBody<M extends Message = Message> = Stored<M> & { readonly body: Uint8Array };

/** Those of `uids` that exist, ordered by uid, with their encoded messages. */
export async function findAll<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  uids: readonly string[],
): Promise<StoredWithBody<MessageShape<S>>[]> {
  const found: StoredWithBody<MessageShape<S>>[] = [];
  for (const some of parameterBatches(uids)) {
    const rows = await db.all<ResourceRow>(FIND_BATCH, resource.kind, ...some);
    for (const row of rows) found.push({ ...toStored(resource, row), body: row.body });
  }
  return found;
}

/** The messages of those of `uids` that exist, by uid. */
export async function findMessagesByUid<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  uids: Iterable<string>,
): Promise<ReadonlyMap<string, MessageShape<S>>> {
  const found = await findAll(db, resource, [...new Set(uids)]);
  return new Map(found.map(({ uid, message }) => [uid, message]));
}

const FIND_BATCH = `SELECT ${COLUMNS.join(', ')} FROM resource
  WHERE kind = $1 AND uid IN (${batchPlaceholders(2)}) ORDER BY uid`;
const FIND_BY_KEY_BATCH = `SELECT key, uid FROM natural_key WHERE kind = $1 AND key IN (${batchPlaceholders(2)})`;
const FIND_REFERRING_BATCH = `SELECT uid FROM reference
  WHERE kind = $1 AND field = $2 AND value IN (${batchPlaceholders(3)})`;

export function toStored<S extends DescMessage>(
  resource: Pick<Resource<S>, 'kind' | 'schema'>,
  row: ResourceRow,
): Stored<MessageShape<S>> {
  return {
    uid: row.uid,
    parent: row.parent,
    created: row.created,
    updated: row.updated,
    message: fromBinary(resource.schema, row.body),
    state: row.state === null ? undefined : (JSON.parse(row.state) as State),
  };
}
