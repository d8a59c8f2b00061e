import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * A package that many servers never need, loaded when it is first used: for the sake of their memory and their start.
 * Required and not imported, since its users cannot wait.
 */
export function lazyPackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= require(name) as T;
    return loaded;
  };
}
