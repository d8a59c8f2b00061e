import { PackageURL } from 'packageurl-js';

/** The parts of a purl. */
export interface PackageCoordinates {
  readonly type: string;
  /** Includes the namespace, if names have one in the ecosystem: `@scope/left-pad`, `org.example:thing`. */
  readonly name: string;
  readonly version?: string;
  readonly architecture?: string;
}

/** Types whose namespace is the distribution of the package. It is not part of the name. */
const typesWithDistribution: ReadonlySet<string> = new Set(['alpm', 'apk', 'deb', 'qpkg', 'rpm']);

/** A purl of an operating system package needs a distribution. */
const defaultDistributions = new Map(Object.entries({ apk: 'wolfi' }));

/** The separator between namespace and name. */
const separatorOf = (type: string): string => (type === 'maven' ? ':' : '/');

/** Returns undefined if the parts do not form a purl, for example because of invalid characters in the type. */
export function formatPurl({ type, name, version, architecture }: PackageCoordinates): string | undefined {
  const separator = typesWithDistribution.has(type) ? -1 : name.lastIndexOf(separatorOf(type));
  const namespace = separator < 0 ? defaultDistributions.get(type) : name.slice(0, separator);
  const qualifiers = architecture ? { arch: architecture } : undefined;
  try {
    return new PackageURL(
      type,
      namespace,
      name.slice(separator + 1),
      version || undefined,
      qualifiers,
      undefined,
    ).toString();
  } catch {
    return undefined;
  }
}

/** Returns undefined for a text that is not a purl. */
export function parsePurl(text: string): PackageCoordinates | undefined {
  if (!text.startsWith('pkg:')) return undefined;
  try {
    const { type, namespace, name, version, qualifiers } = PackageURL.fromString(text);
    return {
      type,
      name: namespace && !typesWithDistribution.has(type) ? `${namespace}${separatorOf(type)}${name}` : name,
      ...(version && { version }),
      ...(qualifiers?.arch && { architecture: qualifiers.arch }),
    };
  } catch {
    return undefined;
  }
}
