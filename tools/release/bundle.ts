import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildIfStale } from '../build.ts';
import type { Material } from './material.ts';
import type { Source } from './source.ts';
import { fileEntry, type TarEntry } from './tar.ts';

/** The bundle in dist/, and the npm packages in it. */
export interface Bundle {
  /** Its files, relative to dist/. */
  readonly files: readonly TarEntry[];
  readonly packages: readonly NpmPackage[];
}

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** A licence expression of SPDX. */
  readonly licence: string;
  readonly material: Material;
}

interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
}

/** Builds dist/ with the commit in `wharf version`, and reads it. */
export async function buildBundle(source: Source): Promise<Bundle> {
  process.env.BUILD_COMMIT = source.commit;
  await buildIfStale();
  const directory = join(source.root, 'dist');
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((found) => found.isFile())
    .map((found) => join(found.parentPath, found.name))
    .map((file) =>
      fileEntry(file.slice(directory.length + 1), readFileSync(file), file.endsWith('.sh') ? 0o755 : 0o644),
    )
    // The fingerprint of the build and the compile cache are of this machine.
    .filter(({ path }) => !/(^|\/)\./.test(path));
  const notices = readFileSync(join(directory, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
  return { files, packages: bundledPackages(source.root, notices) };
}

/** Returns the packages of package-lock.json that the notices of the bundle name. */
function bundledPackages(root: string, notices: string): NpmPackage[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  const packages = new Map<string, NpmPackage>();
  for (const [path, { version = '', license = 'NOASSERTION', integrity = '' }] of Object.entries(lock.packages)) {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (path === '' || !notices.includes(`\n${name} ${version}\nLicence: `)) continue;
    const uri = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const sha512 = Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex');
    packages.set(uri, { name, version, licence: license, material: { uri, digest: { sha512 } } });
  }
  return [...packages.values()].sort((a, b) => (a.material.uri < b.material.uri ? -1 : 1));
}
