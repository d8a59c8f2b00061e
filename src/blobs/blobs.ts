import type { Readable } from 'node:stream';

/**
 * Stores blobs under their digest, `sha256:<64 hex>` or `sha512:<128 hex>`. It knows no repos and no callers: its users
 * check who may read a blob. Every error that it throws is a BlobError.
 */
export interface Blobs {
  stat(digest: string): Promise<{ readonly size: number } | undefined>;
  /** Opens a blob for reading. An open reader can read the whole blob even if it is removed meanwhile. */
  open(digest: string, range?: ByteRange): Promise<BlobReader>;
  /** Lists all blobs in the order of their digests, starting after the digest `after`. */
  list(after?: string): AsyncIterable<BlobEntry>;
  /** Returns whether the blob existed. With `before`, it is removed only if it was last finished before that time. */
  remove(digest: string, condition?: { readonly before: number }): Promise<boolean>;
  /**
   * Moves a damaged blob aside, so that it does not exist any more and can be pushed again. Returns false if it was
   * replaced after it was listed.
   */
  quarantine(entry: Pick<BlobEntry, 'digest' | 'changed'>): Promise<boolean>;

  /** Begins an upload and returns its id. Uploads survive a restart. */
  begin(): Promise<string>;
  /**
   * Appends all of `source` at `offset`, which must be the current size of the upload, and returns the new size. If the
   * source fails, the bytes that it gave are kept, so that the next append can continue from there. A source that is a
   * stream is not destroyed, so that a response can still be sent on its socket. The chunks must not be changed later.
   */
  append(uploadId: string, offset: number, source: AsyncIterable<Uint8Array>, options?: AppendOptions): Promise<number>;
  /** Returns the current size of the upload, or undefined if it does not exist. */
  offset(uploadId: string): Promise<number | undefined>;
  /**
   * Turns the upload into a blob, which is durable when this resolves. If the digest does not match, deletes the
   * upload.
   */
  finish(uploadId: string, digest: string): Promise<{ readonly size: number }>;
  /**
   * Deletes the upload and returns whether it existed. With `before`, it is deleted only if it was begun and last
   * appended to before that time.
   */
  cancel(uploadId: string, condition?: { readonly before: number }): Promise<boolean>;
  /** Lists all uploads, in no order. */
  uploads(): AsyncIterable<UploadEntry>;
}

/** Both ends are inclusive, as in an HTTP Range header. An end after the last byte means the last byte. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface AppendOptions {
  /** The maximum size of the upload after this append. */
  readonly limit?: number;
  /** Called with each chunk of the source after it was written, when its memory can be reused. */
  readonly done?: (chunk: Uint8Array) => void;
}

/** Exactly one of `copyTo`, `stream` and `close` must be called, once. It closes the file. */
export interface BlobReader {
  /** The size of the whole blob. */
  readonly size: number;
  /** The number of bytes that will be read: less than `size` if a range was requested. */
  readonly length: number;
  /**
   * Calls `sink` with one chunk after the other. The memory of a chunk is reused when the promise of the sink resolves.
   * This takes half of the CPU time of a stream.
   */
  copyTo(sink: (chunk: Uint8Array) => Promise<void>): Promise<void>;
  stream(): Readable;
  close(): Promise<void>;
}

export interface BlobEntry {
  readonly digest: string;
  readonly size: number;
  /** When it was last finished, in milliseconds since the epoch. */
  readonly changed: number;
}

export interface UploadEntry {
  readonly id: string;
  readonly size: number;
  /** When it was begun or last appended to, in milliseconds since the epoch. */
  readonly changed: number;
}
