import { type DescMessage, fromBinary, type Message, type MessageShape } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { startSlices } from '../base/slices.ts';
import type { Uid } from '../base/uid.ts';
import { decodeCached, decodeFrozen, isCached } from '../contract/message-cache.ts';
import { batchPlaceholders, parameterBatches } from '../store/parameter-batches.ts';
import { pointRead } from '../store/point-read.ts';
import type { Reader } from '../store/store.ts';
import type { Resource } from './definition.ts';

// Messages for responses. They are cached and shared between requests, except those that `present` will change.

const FIND_BODY = pointRead({ columns: ['body'], from: 'resource', key: ['kind', 'uid'] });
const FIND_BODIES = `SELECT uid, body FROM resource WHERE kind = $1 AND uid IN (${batchPlaceholders(2)})`;

const LARGE_ROW = 1024;

/** Whether `present` may change this message before a client gets it. */
export const needsPresenting = ({ present, needsPresent }: Resource, message: Message): boolean =>
  present !== undefined && (needsPresent?.(message as never) ?? true);

export function findMessage<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  uid: string,
): MaybePromise<MessageShape<S> | undefined> {
  const cached = db.rowCache?.get(resource.kind, uid);
  if (cached !== undefined) return cached as MessageShape<S>;
  const epoch = db.rowCache?.epoch();
  const row = db.get<{ body: Uint8Array }>(FIND_BODY, resource.kind, uid);
  if (row instanceof Promise) return row.then((found) => found && decodeRow(db, resource, uid, found.body, epoch));
  return row && decodeRow(db, resource, uid, row.body, epoch);
}

/** The messages of those that exist, in the order of `uids`. For a database with a row cache. */
export function findMessages<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  uids: readonly string[],
): MaybePromise<MessageShape<S>[]> {
  const epoch = db.rowCache?.epoch();
  const cached = uids.map((uid) => db.rowCache?.get(resource.kind, uid) as MessageShape<S> | undefined);
  return cached.includes(undefined) ? readMissing(db, resource, uids, cached, epoch) : (cached as MessageShape<S>[]);
}

async function readMissing<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  uids: readonly string[],
  cached: readonly (MessageShape<S> | undefined)[],
  epoch: number | undefined,
): Promise<MessageShape<S>[]> {
  const found = new Map<string, MessageShape<S>>();
  const slices = startSlices();
  for (const some of parameterBatches(uids.filter((_, at) => cached[at] === undefined))) {
    const rows = await db.all<{ uid: Uid; body: Uint8Array }>(FIND_BODIES, resource.kind, ...some);
    for (const { uid, body } of rows) {
      // Only large rows take long enough that the time matters.
      if (body.length > LARGE_ROW && slices.isOver()) await slices.next();
      found.set(uid, decodeRow(db, resource, uid, body, epoch));
    }
  }
  return uids.flatMap((uid, at) => cached[at] ?? found.get(uid) ?? []);
}

/** Decodes a row that was read at `epoch` of the row cache, and caches the message. */
export function decodeRow<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  uid: string,
  body: Uint8Array,
  epoch?: number,
): MessageShape<S> {
  if (resource.present && !resource.needsPresent) return fromBinary(resource.schema, body);
  const { rowCache } = db;
  const message = rowCache ? decodeFrozen(resource.schema, body) : decodeCached(resource.schema, uid, body);
  if (needsPresenting(resource, message)) return withUid(fromBinary(resource.schema, body), uid);
  if (epoch !== undefined && isCached(message)) rowCache?.put(epoch, resource.kind, uid, message);
  return message;
}

/** Rows from before the message had a field for its uid do not contain it. */
const withUid = <M extends Message>(message: M, uid: string): M =>
  (message as { uid?: string }).uid === '' ? Object.assign(message, { uid }) : message;
