import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Blobs } from '../blobs/blobs.ts';
import { parseDigest } from '../blobs/digest.ts';
import { BlobError } from '../blobs/errors.ts';
import { blobKey, type ListedBlob, type MatchedBlob, matchBlobs } from './blob-list.ts';
import { requireFree } from './free-space.ts';
import type { Manifest, UnavailableBlob } from './manifest.ts';
import type { Progress } from './progress.ts';
import { forEachConcurrently } from './streams.ts';
import type { BackupTarget } from './target.ts';

export interface CopyBlobsOptions {
  readonly target: BackupTarget;
  readonly blobs: Pick<Blobs, 'open'>;
  /** Begins a new iteration over the blobs of the backup. */
  readonly list: () => AsyncIterable<ListedBlob>;
  readonly full: boolean;
  readonly progress: Progress;
}

const CONCURRENT = 4;

/** Copies the blobs that the target does not have with the right size. */
export async function copyBlobs(options: CopyBlobsOptions): Promise<Omit<Manifest['blobs'], 'part'>> {
  const { target, list, full, progress } = options;
  const isNeeded = ({ stored, size }: MatchedBlob): boolean => full || stored !== size;
  const totals = { count: 0, bytes: 0 };
  let needed = 0;
  for await (const blob of matchBlobs(list(), target.list('blobs/'))) {
    totals.count++;
    totals.bytes += blob.size;
    if (isNeeded(blob)) needed += blob.size;
  }
  await requireFree(target, needed, 'the copy of new blobs');

  const unavailable: UnavailableBlob[] = [];
  let copied = 0;
  let copiedBytes = 0;
  const onBytes = (count: number): void => {
    copiedBytes += count;
    progress.update('bytes of blobs', copiedBytes, needed);
  };
  await forEachConcurrently(matchBlobs(list(), target.list('blobs/')), CONCURRENT, async (blob) => {
    if (!isNeeded(blob)) return;
    const problem = await copyBlob(options, blob, onBytes);
    if (problem === undefined) copied++;
    else unavailable.push({ digest: blob.digest, problem });
  });
  return { ...totals, copied, copiedBytes, unavailable: unavailable.sort((a, b) => (a.digest < b.digest ? -1 : 1)) };
}

class SourceError extends Error {}

/** Returns what is wrong if the server itself has no such blob or a damaged one: the rest is still copied. */
async function copyBlob(
  { target, blobs }: CopyBlobsOptions,
  { digest, size }: ListedBlob,
  onBytes: (count: number) => void,
): Promise<string | undefined> {
  const { algorithm, hex } = parseDigest(digest);
  async function* open(): AsyncGenerator<Uint8Array> {
    const hash = createHash(algorithm);
    try {
      for await (const chunk of await openSource(blobs, digest, size)) {
        hash.update(chunk);
        onBytes(chunk.length);
        yield chunk;
      }
    } catch (error) {
      throw error instanceof BlobError ? new SourceError(describe(error)) : error;
    }
    // Before the end, so that the target does not keep what was written.
    if (hash.digest('hex') !== hex) throw new SourceError('its content does not match its digest');
  }
  try {
    await target.write(blobKey(digest), { open, size, ...(algorithm === 'sha256' && { sha256: hex }) });
    return undefined;
  } catch (error) {
    if (error instanceof SourceError) return error.message;
    throw error;
  }
}

async function openSource(blobs: Pick<Blobs, 'open'>, digest: string, size: number): Promise<Readable> {
  const reader = await blobs.open(digest);
  if (reader.size === size) return reader.stream();
  await reader.close();
  throw new SourceError(`its file has ${reader.size} bytes instead of ${size}`);
}

const describe = (error: BlobError): string =>
  error.reason === 'unknown' ? 'its file is missing' : `its file cannot be read (${(error.cause as Error)?.message})`;
