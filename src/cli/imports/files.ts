import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { misused } from '../exit-codes.ts';
import { messageOf } from '../failure.ts';
import type { Refused } from './item.ts';

/** A file to read. */
export interface Found {
  readonly path: string;
  readonly size: number;
  /** Whether it can be read once only, such as a pipe. */
  readonly isStream: boolean;
}

/** What lies in a directory may be anything; what is named on the command line is meant. */
const NAMES = /\.(?:ya?ml|json|jsonl|ndjson|gz|zip)$/i;

/** All files at and below some paths, in the order of their names. Hidden ones and links are passed over. */
export async function findFiles(paths: readonly string[], refuse: (refused: Refused) => void): Promise<Found[]> {
  const found: Found[] = [];
  for (const path of paths) {
    const info = await stat(path).catch((error) => {
      throw misused(`cannot read ${path}: ${messageOf(error)}`);
    });
    if (info.isDirectory()) await walk(path, found, refuse);
    else found.push({ path, size: info.size, isStream: !info.isFile() });
  }
  return found;
}

async function walk(directory: string, found: Found[], refuse: (refused: Refused) => void): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error) => {
    refuse({ origin: { file: directory }, id: '', field: '', reason: `cannot be read: ${messageOf(error)}` });
    return [];
  });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) await walk(path, found, refuse);
    else if (!NAMES.test(entry.name)) continue;
    else if (entry.isFile()) found.push({ path, size: (await lstat(path)).size, isStream: false });
    // A link could lead anywhere, also in circles.
    else refuse({ origin: { file: path }, id: '', field: '', reason: 'is not a regular file, and is not followed' });
  }
}
