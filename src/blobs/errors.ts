/** Everything that can go wrong with a blob or an upload, with the facts that an answer to the client needs. */
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

/** The only error that leaves this layer. Its message may be shown to clients; the cause is for the log. */
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
      return 'a digest is sha256: and 64, or sha512: and 128 lower-case hexadecimal digits';
    case 'unknown':
      return `there is no such ${failure.kind}`;
    case 'range':
      return `the range must begin within the ${failure.size} bytes of the blob`;
    case 'offset':
      return `the upload goes on at byte ${failure.offset}`;
    case 'busy':
      return 'another request is working on this upload';
    case 'large':
      return `the upload may hold at most ${failure.limit} bytes`;
    case 'interrupted':
      return `the bytes broke off; the upload goes on at byte ${failure.offset}`;
    case 'mismatch':
      return `the digest of the bytes is ${failure.actual}, not ${failure.expected}`;
    case 'full':
      return 'there is no space left to store blobs';
    case 'failed':
      return 'the storage of blobs failed';
  }
}

/** EFBIG is what a limit on the size of files gives: to whoever pushes, the same as no space. */
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** What the operating system refused, in our words. Anything else is a mistake of ours and stays what it is. */
export function asBlobError(error: unknown): unknown {
  if (!isErrno(error)) return error;
  return new BlobError({ reason: NO_SPACE.has(error.code) ? 'full' : 'failed' }, error);
}

export const isErrno = (error: unknown): error is Error & { code: string } =>
  error instanceof Error && 'errno' in error && 'code' in error;

/** For what may be missing: undefined instead of an error. */
export async function unlessMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isErrno(error) && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
