import type { Readable } from 'node:stream';

/**
 * Bytes under the name of their own digest, `sha256:<64 hex>` or `sha512:<128 hex>`. Who may read a blob is decided
 * above: here there are no repos and no callers. Every refusal is a BlobError.
 */
export interface Blobs {
  stat(digest: string): Promise<{ readonly size: number } | undefined>;
  /** Later changes, also a remove, do not disturb a reader that is open. */
  open(digest: string, range?: ByteRange): Promise<BlobReader>;
  /** All blobs in the order of their digests, from the first after `after`: a walk can stop and go on later. */
  list(after?: string): AsyncIterable<BlobEntry>;
  /** Says whether the blob was there. With `before`, it goes only if its last finish was earlier than that. */
  remove(digest: string, condition?: { readonly before: number }): Promise<boolean>;

  /** Opens an upload and gives its id. Uploads survive a restart. */
  begin(): Promise<string>;
  /**
   * Adds all of `source` at `offset`, which must be where the upload ends, and gives the new end. When the source fails,
   * what it gave is kept and the next append goes on from there. A source that is a stream is not destroyed, so that an
   * answer can still be sent on its socket; the chunks it gave must not be written to again.
   */
  append(uploadId: string, offset: number, source: AsyncIterable<Uint8Array>, options?: AppendOptions): Promise<number>;
  /** How many bytes the upload holds; undefined when there is no such upload. */
  offset(uploadId: string): Promise<number | undefined>;
  /** Turns the upload into a blob, durable when this resolves. Bytes that do not match the digest are thrown away. */
  finish(uploadId: string, digest: string): Promise<{ readonly size: number }>;
  /** Says whether the upload was there. */
  cancel(uploadId: string): Promise<boolean>;
  /** All uploads, in no order. One that nobody continued for long may be cancelled. */
  uploads(): AsyncIterable<UploadEntry>;
}

/** Both ends are included, as in an HTTP Range header; an end behind the last byte means the last byte. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface AppendOptions {
  /** The most bytes that the upload may hold after this. */
  readonly limit?: number;
  /** Given each chunk of the source once its bytes are in the upload and nothing here needs it any more. */
  readonly done?: (chunk: Uint8Array) => void;
}

/** Exactly one of `copyTo`, `stream` and `close` must be called, once: it releases what the reader holds. */
export interface BlobReader {
  /** Of the whole blob. */
  readonly size: number;
  /** The number of bytes to come: less than `size` when a range was asked for. */
  readonly length: number;
  /**
   * Hands the bytes to `sink`, piece after piece. A piece is only lent: its memory is used again once the promise of the
   * sink resolves. That saves half of the processor time that a stream of as many bytes takes.
   */
  copyTo(sink: (piece: Uint8Array) => Promise<void>): Promise<void>;
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
