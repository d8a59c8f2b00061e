import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { readMavenVersion } from '../../formats/maven-layout.ts';
import { readSdist } from '../../formats/sdist.ts';
import { UnreadableFile } from '../../formats/unreadable-file.ts';
import { readWheel } from '../../formats/wheel.ts';
import { errorCode, messageOf } from '../failure.ts';
import type { Item } from '../imports/item.ts';
import { type Facts, type LibraryRecord, recordOf } from './record.ts';
import { type Candidate, findLibraries, type Tally } from './walk.ts';

export interface ReadOptions {
  readonly remediated: boolean;
  readonly tally: Tally;
}

/** Reads what lies below some directories, one library after the other. What cannot be read is refused, and the rest goes on. */
export async function* readLibraries(
  directories: readonly string[],
  { remediated, tally }: ReadOptions,
): AsyncGenerator<Item<LibraryRecord>> {
  for await (const candidate of findLibraries(directories)) {
    const origin = { file: candidate.path };
    try {
      const facts = await factsOf(candidate);
      yield { origin, id: `${facts.name} ${facts.version}`, record: recordOf(facts, remediated) };
    } catch (error) {
      // Whatever is wrong with one file or directory is not wrong with the others; what is wrong with us is.
      if (!(error instanceof UnreadableFile) && errorCode(error) === undefined) throw error;
      yield { origin, id: '', field: '', reason: messageOf(error) };
    }
    tally.read++;
  }
}

async function factsOf(candidate: Candidate): Promise<Facts> {
  const { path } = candidate;
  if (candidate.kind === 'closed') throw candidate.error;
  if (candidate.kind === 'maven') {
    const { groupId, artifactId, ...version } = await readMavenVersion(path, candidate.names);
    return { ecosystem: 'java', name: `${groupId}:${artifactId}`, ...version };
  }
  const { time, ...facts } = await (candidate.kind === 'wheel' ? readWheel(path) : readSdist(path));
  const { size, mtimeMs } = await stat(path);
  return { ecosystem: 'python', ...facts, files: [{ name: basename(path), size, time: time ?? Math.trunc(mtimeMs) }] };
}
