import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { UnreadableFileError } from '../../formats/archives/unreadable-file-error.ts';
import { readMavenVersion } from '../../formats/libraries/maven-version.ts';
import { readSdist } from '../../formats/libraries/sdist.ts';
import { readWheel } from '../../formats/libraries/wheel.ts';
import { errorCode, errorMessage } from '../error-message.ts';
import type { ImportItem } from '../imports/import-item.ts';
import { findLibraries, type LibraryCandidate, type ScanProgress } from './find-libraries.ts';
import { type LibraryInfo, type LibraryRecord, libraryRecordOf } from './library-record.ts';

export interface ReadOptions {
  readonly remediated: boolean;
  readonly progress: ScanProgress;
}

/** Reads the libraries in some directories. Unreadable files are refused. */
export async function* readLibraries(
  directories: readonly string[],
  { remediated, progress }: ReadOptions,
): AsyncGenerator<ImportItem<LibraryRecord>> {
  for await (const candidate of findLibraries(directories)) {
    const location = { file: candidate.path };
    try {
      const library = await readLibrary(candidate);
      yield { location, id: `${library.name} ${library.version}`, record: libraryRecordOf(library, remediated) };
    } catch (error) {
      // A defect of a file or directory is a refusal. Any other error is a bug and ends the import.
      if (!(error instanceof UnreadableFileError) && errorCode(error) === undefined) throw error;
      yield { location, id: '', field: '', reason: errorMessage(error) };
    }
    progress.read++;
  }
}

async function readLibrary(candidate: LibraryCandidate): Promise<LibraryInfo> {
  const { path } = candidate;
  if (candidate.kind === 'unreadable') throw candidate.error;
  if (candidate.kind === 'maven') {
    const { groupId, artifactId, ...version } = await readMavenVersion(path, candidate.names);
    return { ecosystem: 'java', name: `${groupId}:${artifactId}`, ...version };
  }
  const { time, ...library } = await (candidate.kind === 'wheel' ? readWheel(path) : readSdist(path));
  const { size, mtimeMs } = await stat(path);
  return {
    ecosystem: 'python',
    ...library,
    files: [{ name: basename(path), size, time: time ?? Math.trunc(mtimeMs) }],
  };
}
