import type { Blobs } from '../../blobs/blobs.ts';
import { type BlobProblem, type VerifiedBlob, verifyBlob, verifyBlobs } from '../../blobs/verify.ts';
import type { VerifyCursor, VerifyProgress } from '../../blobs/verify-cursor.ts';
import { type AffectedRepository, findAffectedImages } from '../../domains/registry/manifests/affected-images.ts';
import { findReposLinking, scanLinkedDigests } from '../../domains/registry/manifests/blob-links.ts';
import type { Reader } from '../../store/store.ts';

/** A blob that clients cannot pull, or would pull with wrong bytes. */
export interface Finding {
  readonly digest: string;
  readonly problem: BlobProblem | 'missing';
  /** Whether the damaged file was moved to the quarantine, so that a push replaces it. */
  readonly isQuarantined: boolean;
  readonly affected: readonly AffectedRepository[];
}

export interface VerificationOptions {
  readonly db: Reader;
  readonly blobs: Blobs;
  /** Moves damaged blobs to the quarantine. Otherwise they are only reported. */
  readonly quarantine?: boolean | undefined;
  readonly bytesPerSecond?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Where the progress is stored. Without it, the verification cannot be resumed. */
  readonly cursor?: VerifyCursor | undefined;
  /** Called for each blob that is not intact. */
  readonly onFinding: (finding: Finding) => void | Promise<void>;
  /** Called after each chunk of a blob that was read. */
  readonly onProgress?: (progress: { readonly blobs: number; readonly bytes: number; readonly after: string }) => void;
}

export interface Verification {
  /** The blobs that were read, and their bytes. */
  readonly blobs: number;
  readonly bytes: number;
  readonly findings: number;
  /** False if `signal` ended it. */
  readonly isComplete: boolean;
}

/** How often the progress is stored. */
const SAVE_MS = 5_000;
/** Links read by one statement. */
const BATCH = 500;

/**
 * Verifies the registry while servers run: reads every blob and compares it with its digest, then looks for blobs that a
 * repo has and whose file is missing.
 */
export async function verifyRegistry(options: VerificationOptions): Promise<Verification> {
  const { db, blobs, quarantine = false, bytesPerSecond, signal, cursor, onFinding, onProgress } = options;
  const resumed = await cursor?.read();
  let { after = '', blobs: count = 0, bytes = 0 } = resumed ?? {};
  const problems: VerifiedBlob[] = [];
  const reported = new Set<string>();

  async function report(digest: string, problem: Finding['problem'], isQuarantined: boolean): Promise<void> {
    reported.add(digest);
    await onFinding({ digest, problem, isQuarantined, affected: await findAffectedImages(db, digest) });
  }

  async function handle(found: VerifiedBlob): Promise<void> {
    const { problem } = found;
    if (problem === undefined) return;
    const isQuarantined = quarantine && (await blobs.quarantine(found));
    // If it could not be moved, a push has replaced it meanwhile.
    if (quarantine && !isQuarantined) return;
    problems.push(found);
    await report(found.digest, problem, isQuarantined);
  }

  const progress = (): VerifyProgress => ({ after, blobs: count, bytes, problems });

  // What the interrupted verification has found may have been repaired since.
  for (const found of resumed?.problems ?? []) {
    const again = await verifyBlob(blobs, found, { signal });
    if (again) await handle(again);
  }
  let savedAt = performance.now();
  const onRead = (read: number): void => {
    bytes += read;
    onProgress?.({ blobs: count, bytes, after });
  };
  for await (const verified of verifyBlobs(blobs, { after: after || undefined, bytesPerSecond, signal, onRead })) {
    await handle(verified);
    after = verified.digest;
    count++;
    if (performance.now() - savedAt < SAVE_MS) continue;
    await cursor?.write(progress());
    savedAt = performance.now();
  }
  if (signal?.aborted) {
    await cursor?.write(progress());
    return { blobs: count, bytes, findings: reported.size, isComplete: false };
  }
  for await (const digest of missingBlobs(db, blobs)) {
    if (!reported.has(digest)) await report(digest, 'missing', false);
  }
  await cursor?.clear();
  return { blobs: count, bytes, findings: reported.size, isComplete: true };
}

/** The digests of blobs that a repo has and whose file does not exist. */
async function* missingBlobs(db: Reader, blobs: Pick<Blobs, 'stat'>): AsyncGenerator<string> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const digests: string[] = await scanLinkedDigests(db, after as string, BATCH);
    const files = await Promise.all(digests.map((digest) => blobs.stat(digest)));
    for (const [index, digest] of digests.entries()) {
      // Garbage collection may have deleted the link and then the file in between.
      if (files[index] === undefined && (await findReposLinking(db, digest, 1)).length > 0) yield digest;
    }
    after = digests.length === BATCH ? digests.at(-1) : undefined;
  }
}
