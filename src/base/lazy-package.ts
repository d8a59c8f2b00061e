import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Returns a function that loads a package on its first call. It saves memory and start time on servers that never need
 * the package. `require` is used because the callers are synchronous.
 */
export function lazyPackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= require(name) as T;
    return loaded;
  };
}
