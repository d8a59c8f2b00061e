import type { Reader, Row, Transaction } from '../../../store/store.ts';
import { lockStorage, storageExhausted } from './organization-storage.ts';

// The unfinished uploads of an organization. Their files are in the blob storage; a row per upload says to which
// organization it belongs, and how many bytes it may have. So unfinished uploads cannot fill the disk.

const OTHERS =
  'SELECT count(*) AS n, coalesce(sum(bytes), 0) AS bytes FROM upload WHERE organization = $1 AND id <> $2';
const PUT = `INSERT INTO upload (id, organization, bytes, begun) VALUES ($1, $2, $3, $4)
  ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes`;
const DELETE = 'DELETE FROM upload WHERE id = $1';
const FIND_OLD = 'SELECT id FROM upload WHERE organization = $1 AND begun < $2 ORDER BY begun LIMIT 100';
const SCAN_OLD = 'SELECT id FROM upload WHERE begun < $1 AND id > $2 ORDER BY id LIMIT 500';

/** An upload that reserves bytes of the quota of an organization. */
export interface Reservation {
  readonly id: string;
  readonly organization: string;
  /** How many bytes it must get. */
  readonly needed: number;
  /** How many it gets if they are free, so that the next part of a stream needs no further reservation. */
  readonly wanted: number;
  readonly now: number;
}

interface Others extends Row {
  readonly n: number;
  readonly bytes: number;
}

/** A retry can succeed as soon as another upload of the organization has ended. */
const RETRY_MS = 5_000;

/** Records a new upload. Throws RESOURCE_EXHAUSTED if the organization has too many. Returns the bytes it may have. */
export async function openUpload(tx: Transaction, reservation: Reservation): Promise<number> {
  const { organization } = reservation;
  const stored = await lockStorage(tx, organization);
  const others = await findOthers(tx, reservation);
  const limit = tx.quotas?.limits.openUploads ?? Infinity;
  if (others.n >= limit) {
    throw tx.quotas?.refuse(
      'open_uploads',
      `organization:${organization}`,
      `an organization may have ${limit} unfinished uploads; finish or cancel some, or retry after the delay`,
      RETRY_MS,
    );
  }
  return put(tx, reservation, stored + others.bytes);
}

/** Reserves bytes for an upload. Returns how many it may have in total. Throws RESOURCE_EXHAUSTED. */
export async function reserveBytes(tx: Transaction, reservation: Reservation): Promise<number> {
  const stored = await lockStorage(tx, reservation.organization);
  return put(tx, reservation, stored + (await findOthers(tx, reservation)).bytes);
}

async function findOthers(tx: Transaction, { organization, id }: Reservation): Promise<Others> {
  const row = await tx.get<Others>(OTHERS, organization, id);
  return { n: Number(row?.n ?? 0), bytes: Number(row?.bytes ?? 0) };
}

async function put(tx: Transaction, reservation: Reservation, used: number): Promise<number> {
  const { id, organization, needed, wanted, now } = reservation;
  const limit = tx.quotas?.limits.storageBytes ?? Infinity;
  const granted = Math.min(wanted, limit - used);
  if (granted < needed) throw storageExhausted(tx, organization, limit);
  await tx.run(PUT, id, organization, granted, now);
  return granted;
}

/** Forgets an upload that was finished or cancelled. */
export const closeUpload = async (tx: Transaction, id: string): Promise<void> => void (await tx.run(DELETE, id));

/** Uploads of an organization that were begun before a time, the oldest first. */
export const findOldUploads = async (db: Reader, organization: string, before: number): Promise<string[]> =>
  (await db.all<{ id: string }>(FIND_OLD, organization, before)).map(({ id }) => id);

/** Uploads of all organizations that were begun before a time, in steps. */
export const scanOldUploads = async (db: Reader, before: number, after: string): Promise<string[]> =>
  (await db.all<{ id: string }>(SCAN_OLD, before, after)).map(({ id }) => id);
