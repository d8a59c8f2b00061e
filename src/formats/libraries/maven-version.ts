import type { Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { buildTimeOf } from '../archives/build-time.ts';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { readZipEntries } from '../archives/zip.ts';
import { type Pom, readPom } from './pom.ts';

/** A version of a library, from its directory in a Maven repository. */
export interface MavenVersion {
  readonly groupId: string;
  readonly artifactId: string;
  readonly version: string;
  readonly description: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly time: number }[];
}

const MAX_POM_BYTES = 8 * 1024 * 1024;
const POM = /\.pom$/;
const ARCHIVE = /\.(?:jar|war|aar|ear)$/;
/** Checksums, signatures and state files of tools are not part of a library. */
const COMPANION = /\.(?:md5|sha1|sha256|sha512|asc|sigstore|lastUpdated)$/;

/** Whether a directory with these files is the directory of a version. */
export const isMavenVersionDirectory = (names: readonly string[]): boolean => names.some((name) => POM.test(name));

/** Reads the directory of a version: `<group as path>/<artifact>/<version>`. Refuses it if the POM does not match. */
export async function readMavenVersion(directory: string, names: readonly string[]): Promise<MavenVersion> {
  // A snapshot may have several POMs. Their names sort by time.
  const pomName =
    names
      .filter((name) => POM.test(name))
      .sort()
      .at(-1) ?? '';
  const pom = readPom(await readPomFile(join(directory, pomName)));
  const [version = '', artifactId = '', ...parents] = directory.split(sep).reverse();
  checkPomMatchesDirectory(pom, { version, artifactId, groupPath: parents.reverse().join('.') });

  const fileNames = names.filter((name) => name.startsWith(`${artifactId}-`) && !COMPANION.test(name)).sort();
  const files = [];
  for (const name of fileNames) {
    const stats = await stat(join(directory, name));
    const time = ARCHIVE.test(name) ? await archiveBuildTime(directory, name) : undefined;
    files.push({ name, size: stats.size, time: time ?? modifiedTimeOf(stats) });
  }
  const { groupId, description } = pom;
  return { groupId, artifactId, version, description, files };
}

const modifiedTimeOf = ({ mtimeMs }: Stats): number => Math.trunc(mtimeMs);

interface DirectoryCoordinates {
  readonly version: string;
  readonly artifactId: string;
  /** The parent directories from the root of the file system, separated by dots. */
  readonly groupPath: string;
}

/** The build replaces placeholders such as ${revision}, so only the directory has the value. */
const hasPlaceholder = (value: string): boolean => value.includes('${');

function checkPomMatchesDirectory(pom: Pom, { version, artifactId, groupPath }: DirectoryCoordinates): void {
  const refuse = (property: string, value: string): never => {
    throw new UnreadableFileError(`does not match its POM, which has the ${property} ${value}`);
  };
  if (pom.artifactId !== artifactId) refuse('artifactId', pom.artifactId);
  if (pom.version !== version && !hasPlaceholder(pom.version)) refuse('version', pom.version || '(none)');
  if (pom.groupId === '' || hasPlaceholder(pom.groupId)) refuse('groupId', pom.groupId || '(none)');
  if (groupPath !== pom.groupId && !groupPath.endsWith(`.${pom.groupId}`)) refuse('groupId', pom.groupId);
}

async function readPomFile(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > MAX_POM_BYTES) throw new UnreadableFileError(`has a POM of more than ${MAX_POM_BYTES} bytes`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The time of the first entry, which is the manifest that the build wrote. Refuses a file that is not an archive. */
async function archiveBuildTime(directory: string, name: string): Promise<number | undefined> {
  try {
    for await (const { time } of readZipEntries(join(directory, name))) return buildTimeOf(time);
  } catch (error) {
    throw error instanceof UnreadableFileError ? new UnreadableFileError(`has a ${name} that ${error.message}`) : error;
  }
  return undefined;
}
