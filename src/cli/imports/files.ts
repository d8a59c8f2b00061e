import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '../error-message.ts';
import { usageError } from '../exit-codes.ts';
import type { Refusal } from './import-item.ts';

/** A file to read. */
export interface SourceFile {
  readonly path: string;
  readonly size: number;
  /** Whether it can be read only once, such as a pipe. */
  readonly isStream: boolean;
}

/** Other files in directories are ignored. A file that is named on the command line is always read. */
const KNOWN_EXTENSIONS = /\.(?:ya?ml|json|jsonl|ndjson|gz|zip)$/i;

/** Finds the files in some paths, in the order of their names. Hidden files are ignored, links are refused. */
export async function findFiles(paths: readonly string[], refuse: (refusal: Refusal) => void): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  for (const path of paths) {
    const info = await stat(path).catch((error) => {
      throw usageError(`cannot read ${path}: ${errorMessage(error)}`);
    });
    if (info.isDirectory()) await walk(path, files, refuse);
    else files.push({ path, size: info.size, isStream: !info.isFile() });
  }
  return files;
}

async function walk(directory: string, files: SourceFile[], refuse: (refusal: Refusal) => void): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error) => {
    refuse({ location: { file: directory }, id: '', field: '', reason: `cannot be read: ${errorMessage(error)}` });
    return [];
  });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) await walk(path, files, refuse);
    else if (!KNOWN_EXTENSIONS.test(entry.name)) continue;
    else if (entry.isFile()) files.push({ path, size: (await lstat(path)).size, isStream: false });
    // A link could lead out of the directory, or to a cycle.
    else
      refuse({ location: { file: path }, id: '', field: '', reason: 'is not a regular file; links are not followed' });
  }
}
