import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMavenVersion } from '../../formats/maven-layout.ts';

const WHEEL = /\.whl$/i;
/** `<name>-<version>`: any other archive is something else. */
const SDIST = /-v?\d[^/]*\.(?:tar\.gz|tgz)$|-\d[^-]*\.zip$/i;

/** Something that may be a library, or a part of one. */
export type Candidate =
  | { readonly kind: 'wheel' | 'sdist'; readonly path: string }
  /** The directory of a version in a Maven repository, and its files. */
  | { readonly kind: 'maven'; readonly path: string; readonly names: readonly string[] }
  /** A directory that we cannot look into. */
  | { readonly kind: 'closed'; readonly path: string; readonly error: unknown };

/** How many of the candidates have been looked at. */
export interface Tally {
  read: number;
  readonly total: number;
}

/** Everything below some directories that may be a library. */
export async function* findLibraries(directories: readonly string[]): AsyncGenerator<Candidate> {
  for (const directory of directories) yield* findBelow(directory);
}

/** In the order of names. Links are not followed. */
async function* findBelow(directory: string): AsyncGenerator<Candidate> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  if (isMavenVersion(names)) {
    yield { kind: 'maven', path: directory, names };
  } else {
    for (const name of names.sort()) {
      if (WHEEL.test(name)) yield { kind: 'wheel', path: join(directory, name) };
      else if (SDIST.test(name)) yield { kind: 'sdist', path: join(directory, name) };
    }
  }
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  for (const path of below.sort().map((name) => join(directory, name))) {
    try {
      yield* findBelow(path);
    } catch (error) {
      yield { kind: 'closed', path, error };
    }
  }
}

export async function countLibraries(directories: readonly string[]): Promise<number> {
  let count = 0;
  for await (const _ of findLibraries(directories)) count++;
  return count;
}
