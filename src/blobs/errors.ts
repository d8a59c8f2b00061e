/** The reasons why an operation on a blob or an upload fails, with the data that the response to the client needs. */
export type BlobFailure =
  | { readonly reason: 'invalid' }
  | { readonly reason: 'unknown'; readonly kind: 'blob' | 'upload' }
  | { readonly reason: 'range'; readonly size: number }
  | { readonly reason: 'offset'; readonly offset: number }
  | { readonly reason: 'busy' }
  | { readonly reason: 'large'; readonly limit: number }
  | { readonly reason: 'interrupted'; readonly offset: number }
  | { readonly reason: 'mismatch'; readonly expected: string; readonly actual: string }
  | { readonly reason: 'full' }
  | { readonly reason: 'failed' };

/** The only error that `Blobs` throws. Its message may be shown to clients. The cause is for the log. */
export class BlobError extends Error {
  override readonly name = 'BlobError';
  readonly failure: BlobFailure;

  constructor(failure: BlobFailure, cause?: unknown) {
    super(describe(failure), cause === undefined ? {} : { cause });
    this.failure = failure;
  }

  get reason(): BlobFailure['reason'] {
    return this.failure.reason;
  }
}

function describe(failure: BlobFailure): string {
  switch (failure.reason) {
    case 'invalid':
      return 'a digest must be sha256: and 64, or sha512: and 128 lower-case hexadecimal digits';
    case 'unknown':
      return `the ${failure.kind} does not exist`;
    case 'range':
      return `the range must begin within the ${failure.size} bytes of the blob`;
    case 'offset':
      return `the upload must continue at byte ${failure.offset}`;
    case 'busy':
      return 'another request is writing to this upload; try again when it has ended';
    case 'large':
      return `the upload may have at most ${failure.limit} bytes`;
    case 'interrupted':
      return `the upload was interrupted; continue it at byte ${failure.offset}`;
    case 'mismatch':
      return `the digest of the bytes is ${failure.actual}, not ${failure.expected}`;
    case 'full':
      return 'the storage for blobs is full';
    case 'failed':
      return 'the storage for blobs failed';
  }
}

/** EFBIG means that a file would exceed the size limit of the process. For a client it is the same as a full disk. */
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Turns an error of the operating system into a BlobError. Any other error is a bug and is returned as it is. */
export function asBlobError(error: unknown): unknown {
  if (!isErrno(error)) return error;
  return new BlobError({ reason: NO_SPACE.has(error.code) ? 'full' : 'failed' }, error);
}

export const isErrno = (error: unknown): error is Error & { code: string } =>
  error instanceof Error && 'errno' in error && 'code' in error;

/** Returns undefined if the file does not exist. */
export async function unlessMissing<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (isErrno(error) && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
