import { ApiError } from '../../base/errors.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { BlobError } from '../../blobs/errors.ts';
import {
  closeUpload,
  findOldUploads,
  openUpload,
  type Reservation,
  reserveBytes,
} from '../../domains/registry/storage/open-uploads.ts';
import type { Store } from '../../store/store.ts';

export interface UploadQuotaOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  /** Whether the bytes of an organization are limited. Otherwise nothing is reserved for the bytes of an upload. */
  readonly isStorageLimited: boolean;
}

/** An unfinished upload and the organization that it counts for. */
export interface CountedUpload {
  readonly id: string;
  readonly organization: string;
  readonly now: number;
}

/** Begins and ends uploads, and counts them and their bytes against the quotas of an organization. */
export interface UploadQuota {
  /** Begins an upload and returns its id. Throws RESOURCE_EXHAUSTED. */
  begin(organization: string, now: number): Promise<string>;
  /**
   * Passes on the body of a request, and reserves its bytes before they are stored: all at once if its length is known,
   * else step by step. Fails with RESOURCE_EXHAUSTED.
   */
  reserving(
    source: AsyncIterable<Uint8Array>,
    upload: CountedUpload,
    offset: number,
    length: number | undefined,
  ): AsyncIterable<Uint8Array>;
  /** Deletes an upload and returns whether it existed. */
  cancel(id: string): Promise<boolean>;
  /** Call it after a failed request: forgets the upload if the failure has deleted it. */
  forgetIfDeleted(id: string): Promise<void>;
}

/** How much a body of unknown length reserves at a time: one transaction for it takes little compared to writing it. */
const STEP_BYTES = 64 * 1024 * 1024;
/** Uploads without progress for this long are cancelled when their organization has reached its limit. */
const ABANDONED_MS = 24 * 3_600_000;

export function createUploadQuota({ store, blobs, isStorageLimited }: UploadQuotaOptions): UploadQuota {
  const forget = (id: string): Promise<void> => store.write((tx) => closeUpload(tx, id));
  const reserve = (upload: CountedUpload, needed: number, wanted: number): Promise<number> =>
    store.write((tx) => reserveBytes(tx, { ...upload, needed, wanted }));

  async function cancelAbandoned(organization: string, now: number): Promise<number> {
    const before = now - ABANDONED_MS;
    let cancelled = 0;
    for (const id of await findOldUploads(store.reader, organization, before)) {
      const isCancelled = await blobs.cancel(id, { before }).catch(() => false);
      if (!isCancelled && (await blobs.offset(id)) !== undefined) continue;
      await forget(id);
      cancelled++;
    }
    return cancelled;
  }

  async function open(reservation: Reservation): Promise<void> {
    try {
      await store.write((tx) => openUpload(tx, reservation));
    } catch (error) {
      const isRefused = error instanceof ApiError;
      if (!isRefused || (await cancelAbandoned(reservation.organization, reservation.now)) === 0) throw error;
      await store.write((tx) => openUpload(tx, reservation));
    }
  }

  async function* reserving(
    source: AsyncIterable<Uint8Array>,
    upload: CountedUpload,
    offset: number,
    length: number | undefined,
  ): AsyncGenerator<Uint8Array> {
    let end = offset;
    let reserved = length === undefined ? offset : await reserve(upload, offset + length, offset + length);
    for await (const chunk of source) {
      end += chunk.length;
      if (end > reserved) reserved = await reserve(upload, end, end + STEP_BYTES);
      yield chunk;
    }
  }

  return {
    async begin(organization, now) {
      const id = await blobs.begin();
      try {
        await open({ id, organization, needed: 0, wanted: 0, now });
      } catch (error) {
        await blobs.cancel(id).catch(() => {});
        throw error;
      }
      return id;
    },
    reserving: (source, upload, offset, length) =>
      isStorageLimited ? reserving(source, upload, offset, length) : source,
    async cancel(id) {
      const existed = await blobs.cancel(id);
      await forget(id);
      return existed;
    },
    async forgetIfDeleted(id) {
      if ((await blobs.offset(id)) === undefined) await forget(id);
    },
  };
}

/** Returns the refusal of a quota that interrupted an append, or else the error itself. */
export const quotaErrorIn = (error: unknown): unknown =>
  error instanceof BlobError && error.reason === 'interrupted' && error.cause instanceof ApiError ? error.cause : error;
