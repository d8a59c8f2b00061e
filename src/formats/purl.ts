import { PackageURL } from 'packageurl-js';

/** A package as a purl names it. */
export interface Package {
  readonly type: string;
  /** With the namespace in front, where its ecosystem writes names so. */
  readonly name: string;
  readonly version?: string;
  readonly architecture?: string;
}

/** Where the namespace is the distribution that a package comes from, and no part of its name. */
const distributed: ReadonlySet<string> = new Set(['alpm', 'apk', 'deb', 'qpkg', 'rpm']);

/** Without its distribution a package of an operating system is not fully named. */
const distributions = new Map(Object.entries({ apk: 'wolfi' }));

/** What an ecosystem puts between namespace and name. */
const separatorOf = (type: string): string => (type === 'maven' ? ':' : '/');

/** Nothing when the parts make no purl, as where the type has characters that a type cannot have. */
export function purlOf({ type, name, version, architecture }: Package): string | undefined {
  const cut = distributed.has(type) ? -1 : name.lastIndexOf(separatorOf(type));
  const namespace = cut < 0 ? distributions.get(type) : name.slice(0, cut);
  const qualifiers = architecture ? { arch: architecture } : undefined;
  try {
    return new PackageURL(type, namespace, name.slice(cut + 1), version || undefined, qualifiers, undefined).toString();
  } catch {
    return undefined;
  }
}

export function readPurl(text: string): Package | undefined {
  if (!text.startsWith('pkg:')) return undefined;
  try {
    const { type, namespace, name, version, qualifiers } = PackageURL.fromString(text);
    return {
      type,
      name: namespace && !distributed.has(type) ? `${namespace}${separatorOf(type)}${name}` : name,
      ...(version && { version }),
      ...(qualifiers?.arch && { architecture: qualifiers.arch }),
    };
  } catch {
    return undefined;
  }
}
