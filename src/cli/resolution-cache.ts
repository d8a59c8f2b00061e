import { type ResolveFnOutput, registerHooks } from 'node:module';

/**
 * For each of some two thousand imports of a start Node asks the disk where the file is, what package it is in, and what that
 * says about its format: a fifth of the start. Yet files of one extension in one place are of one format, and a package is the
 * same one for all of them. So each question is asked once; a file that is not there is noticed when it is read. Directories
 * may be links, as those of some package managers are; single files may not.
 */
export function resolveOnce(): void {
  const formats = new Map<string, string>();
  const packages = new Map<string, ResolveFnOutput>();

  registerHooks({
    resolve(specifier, context, resolve) {
      const { parentURL, conditions } = context;
      // What is required resolves under other conditions, and there is little of it.
      if (parentURL === undefined || !conditions.includes('import')) return resolve(specifier, context);
      if (specifier.startsWith('.')) {
        const url = new URL(specifier, parentURL).href;
        const kind = placeOf(url) + url.slice(url.lastIndexOf('.'));
        const format = formats.get(kind);
        if (format !== undefined) return { url, format, shortCircuit: true };
        const found = resolve(specifier, context);
        if (found.format) formats.set(kind, found.format);
        return found;
      }
      const name = specifier.startsWith('node:') ? specifier : `${placeOf(parentURL)} ${specifier}`;
      const known = packages.get(name);
      if (known !== undefined) return known;
      const found = { ...resolve(specifier, context), shortCircuit: true };
      packages.set(name, found);
      return found;
    },
  });
}

/** Our sources, which are one package. Elsewhere a place is a directory, as there may be a package.json in any. */
const SOURCES = new URL('..', import.meta.url).href;

const placeOf = (url: string): string => (url.startsWith(SOURCES) ? SOURCES : url.slice(0, url.lastIndexOf('/') + 1));
