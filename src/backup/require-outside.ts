import { isAbsolute, relative, resolve } from 'node:path';

/** Refuses a target in the data directory: it would be lost with what it protects. */
export function requireOutside(location: string, dataDir: string): void {
  if (location.startsWith('s3://')) return;
  const path = relative(resolve(dataDir), resolve(location));
  if (path === '' || !(path.startsWith('..') || isAbsolute(path))) {
    throw new Error(
      `${location} is in the data directory, and would be lost with it: name a directory on another disk`,
    );
  }
}
