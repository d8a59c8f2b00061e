import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Material } from './material.ts';
import { type Platform, platforms } from './platforms.ts';
import { run } from './run.ts';
import type { Source } from './source.ts';
import type { TarEntry } from './tar.ts';

/** Node needs the first three. `base-files` names the distribution, by which scanners find its advisories. */
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1', 'gcc-14-base', 'base-files'];

export const SUITE = 'trixie';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly sha256: string;
  /** Its description in the format of dpkg. */
  readonly control: string;
  readonly files: readonly TarEntry[];
  readonly material: Material;
}

/**
 * Downloads the current versions of the packages for all platforms, with the security updates of the suite, and
 * verifies the signatures of Debian. apt runs with a configuration of its own, so the build machine can have another
 * distribution and architecture.
 */
export function downloadDebianPackages(source: Source): (platform: Platform) => DebianPackage[] {
  const directory = join(source.cacheDirectory, 'debian');
  const downloads = join(directory, 'downloads');
  rmSync(downloads, { recursive: true, force: true });
  for (const path of ['lists/partial', 'cache/archives/partial', 'downloads']) {
    mkdirSync(join(directory, path), { recursive: true });
  }
  writeFileSync(join(directory, 'debian.sources'), sources());
  const configuration = join(directory, 'apt.conf');
  writeFileSync(configuration, aptConfiguration(directory));
  const env = { ...process.env, APT_CONFIG: configuration, LC_ALL: 'C' };
  run('apt-get', ['-qq', 'update'], downloads, env);
  const names = platforms.flatMap(({ architecture }) => PACKAGES.map((name) => `${name}:${architecture}`));
  run('apt-get', ['-qq', 'download', ...names], downloads, env);
  const files = readdirSync(downloads).filter((file) => file.endsWith('.deb'));
  return ({ architecture }) =>
    files
      .filter((file) => file.endsWith(`_${architecture}.deb`) || file.endsWith('_all.deb'))
      .sort()
      .map((file) => readPackage(join(downloads, file)));
}

const sources = (): string =>
  [
    ['http://deb.debian.org/debian', `${SUITE} ${SUITE}-updates`],
    ['http://deb.debian.org/debian-security', `${SUITE}-security`],
  ]
    .map(([uri, suites]) => `Types: deb\nURIs: ${uri}\nSuites: ${suites}\nComponents: main\nSigned-By: ${KEYRING}\n`)
    .join('\n');

const aptConfiguration = (directory: string): string => `
Dir::State "${directory}";
Dir::State::lists "${directory}/lists";
Dir::State::status "/dev/null";
Dir::Cache "${directory}/cache";
Dir::Etc::sourcelist "${directory}/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "${platforms[0]?.architecture}";
APT::Architectures { ${platforms.map(({ architecture }) => `"${architecture}"; `).join('')}};
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
`;

function readPackage(file: string): DebianPackage {
  const control = run('dpkg-deb', ['--field', file], '/');
  const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1] ?? '';
  const [name, version, architecture] = ['Package', 'Version', 'Architecture'].map(field) as [string, string, string];
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  const unpacked = file.slice(0, -'.deb'.length);
  run('dpkg-deb', ['--extract', file, unpacked], '/');
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=${SUITE}`;
  const files = filesBelow(unpacked).filter(({ path }) => isNeeded(path));
  return { name, version, architecture, sha256, control, files, material: { uri: purl, digest: { sha256 } } };
}

/**
 * Whether a file of a package belongs into the image: the libraries and the loader, the name of the distribution, the
 * directories of the root, and the licences. Conversions between character sets (gconv), which Node does itself, and
 * all that is for shells and administrators stays out.
 */
function isNeeded(path: string): boolean {
  return (
    /^usr\/lib(64)?\/([^/]+\/)?(ld-linux[^/]*|lib(c|dl|gcc_s|m|mvec|nss_dns|nss_files|pthread|resolv|rt|stdc\+\+)\.so\.[\d.]+)$/.test(
      path,
    ) ||
    /^(usr\/lib\/os-release|etc\/os-release|etc\/debian_version|lib|lib64)$/.test(path) ||
    /^usr\/share\/doc\/[^/]+(\/copyright)?$/.test(path) ||
    path.startsWith('usr/share/common-licenses/')
  );
}

/** All files and links below a directory. Directories themselves are left out, unless they are links. */
function filesBelow(directory: string): TarEntry[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true }).flatMap((found): TarEntry[] => {
    const file = join(found.parentPath, found.name);
    const path = file.slice(directory.length + 1);
    if (found.isSymbolicLink()) return [{ path, mode: 0o777, content: { linkTo: readlinkSync(file) } }];
    if (!found.isFile()) return [];
    const isProgram = /(^|\/)ld-linux[^/]*$|libc\.so\.6$/.test(path);
    return [{ path, mode: isProgram ? 0o755 : 0o644, content: readFileSync(file) }];
  });
}
