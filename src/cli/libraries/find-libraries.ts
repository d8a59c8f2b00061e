import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMavenVersionDirectory } from '../../formats/libraries/maven-version.ts';

const WHEEL = /\.whl$/i;
/** A source distribution is named `<name>-<version>`. Other archives are ignored. */
const SDIST = /-v?\d[^/]*\.(?:tar\.gz|tgz)$|-\d[^-]*\.zip$/i;

/** A file or directory that can be a library. */
export type LibraryCandidate =
  | { readonly kind: 'wheel' | 'sdist'; readonly path: string }
  /** The directory of a version in a Maven repository, and its files. */
  | { readonly kind: 'maven'; readonly path: string; readonly names: readonly string[] }
  /** A directory that cannot be read. */
  | { readonly kind: 'unreadable'; readonly path: string; readonly error: unknown };

/** How many of the candidates have been read. */
export interface ScanProgress {
  read: number;
  readonly total: number;
}

/** Finds the candidates in some directories and their subdirectories. */
export async function* findLibraries(directories: readonly string[]): AsyncGenerator<LibraryCandidate> {
  for (const directory of directories) yield* findBelow(directory);
}

/** Candidates in the order of names. Links are not followed. */
async function* findBelow(directory: string): AsyncGenerator<LibraryCandidate> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  if (isMavenVersionDirectory(names)) {
    yield { kind: 'maven', path: directory, names };
  } else {
    for (const name of names.sort()) {
      if (WHEEL.test(name)) yield { kind: 'wheel', path: join(directory, name) };
      else if (SDIST.test(name)) yield { kind: 'sdist', path: join(directory, name) };
    }
  }
  const subdirectories = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  for (const path of subdirectories.sort().map((name) => join(directory, name))) {
    try {
      yield* findBelow(path);
    } catch (error) {
      yield { kind: 'unreadable', path, error };
    }
  }
}

export async function countLibraries(directories: readonly string[]): Promise<number> {
  let count = 0;
  for await (const _ of findLibraries(directories)) count++;
  return count;
}
