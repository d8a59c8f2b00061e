import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from './errors.ts';
import type { VerifiedBlob } from './verify.ts';

/** How far a verification has come. */
export interface VerifyProgress {
  /** The digest of the last verified blob; empty at the beginning. */
  readonly after: string;
  readonly blobs: number;
  readonly bytes: number;
  /** The blobs that are not intact. */
  readonly problems: readonly VerifiedBlob[];
}

/** Stores the progress of a verification, so that the next one resumes one that was killed. */
export interface VerifyCursor {
  read(): Promise<VerifyProgress | undefined>;
  write(progress: VerifyProgress): Promise<void>;
  clear(): Promise<void>;
}

/** Stores the progress in a file in the directory of the blobs. */
export function createVerifyCursor(root: string): VerifyCursor {
  const path = join(root, 'verify.json');
  return {
    async read() {
      const text = await unlessMissing(readFile(path, 'utf8'));
      try {
        return text === undefined ? undefined : (JSON.parse(text) as VerifyProgress);
      } catch {
        // A damaged cursor only costs time.
        return undefined;
      }
    },
    async write(progress) {
      await writeFile(`${path}.new`, JSON.stringify(progress), { mode: 0o600 });
      await rename(`${path}.new`, path);
    },
    clear: () => rm(path, { force: true }),
  };
}
