import type { Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { buildTime } from './build-time.ts';
import { type PomFacts, readPom } from './maven.ts';
import { UnreadableFile } from './unreadable-file.ts';
import { zipEntries } from './zip.ts';

/** A version of a library as a Maven repository has it, in a directory of its own. */
export interface MavenVersion {
  readonly groupId: string;
  readonly artifactId: string;
  readonly version: string;
  readonly description: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly time: number }[];
}

const MAX_POM = 8 * 1024 * 1024;
const POM = /\.pom$/;
const ARCHIVE = /\.(?:jar|war|aar|ear)$/;
/** Checksums, signatures and notes of other tools are no part of a library. */
const BESIDE = /\.(?:md5|sha1|sha256|sha512|asc|sigstore|lastUpdated)$/;

/** Whether a directory with these files is one of a version. */
export const isMavenVersion = (names: readonly string[]): boolean => names.some((name) => POM.test(name));

/** Reads the directory of a version: `<group as path>/<artifact>/<version>`. A POM that says something else is refused. */
export async function readMavenVersion(directory: string, names: readonly string[]): Promise<MavenVersion> {
  // Of a snapshot there may be several; their names sort by time.
  const pomName =
    names
      .filter((name) => POM.test(name))
      .sort()
      .at(-1) ?? '';
  const pom = readPom(await readSmall(join(directory, pomName)));
  const [version = '', artifactId = '', ...above] = directory.split(sep).reverse();
  checkPlace(pom, { version, artifactId, groupPath: above.reverse().join('.') });

  const own = names.filter((name) => name.startsWith(`${artifactId}-`) && !BESIDE.test(name)).sort();
  const files = [];
  for (const name of own) {
    const facts = await stat(join(directory, name));
    const time = ARCHIVE.test(name) ? await archiveTime(directory, name) : undefined;
    files.push({ name, size: facts.size, time: time ?? timeOf(facts) });
  }
  const { groupId, description } = pom;
  return { groupId, artifactId, version, description, files };
}

const timeOf = ({ mtimeMs }: Stats): number => Math.trunc(mtimeMs);

interface Place {
  readonly version: string;
  readonly artifactId: string;
  /** With dots, from the root of the file system. */
  readonly groupPath: string;
}

/** Values such as a ${revision} are filled in by the build, so that only the place of the POM tells them. */
const isOpen = (value: string): boolean => value.includes('${');

function checkPlace(pom: PomFacts, { version, artifactId, groupPath }: Place): void {
  const refuse = (what: string, said: string): never => {
    throw new UnreadableFile(`is not where its POM belongs: that says ${what} ${said}`);
  };
  if (pom.artifactId !== artifactId) refuse('artifactId', pom.artifactId);
  if (pom.version !== version && !isOpen(pom.version)) refuse('version', pom.version || '(none)');
  if (pom.groupId === '' || isOpen(pom.groupId)) refuse('groupId', pom.groupId || '(none)');
  if (groupPath !== pom.groupId && !groupPath.endsWith(`.${pom.groupId}`)) refuse('groupId', pom.groupId);
}

async function readSmall(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > MAX_POM) throw new UnreadableFile(`has a POM of more than ${MAX_POM} bytes`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** When an archive was made: what is written first is the manifest of the build. Also tells whether it is one at all. */
async function archiveTime(directory: string, name: string): Promise<number | undefined> {
  try {
    for await (const { time } of zipEntries(join(directory, name))) return buildTime(time);
  } catch (error) {
    throw error instanceof UnreadableFile ? new UnreadableFile(`has a ${name} that ${error.message}`) : error;
  }
  return undefined;
}
