import { basename } from 'node:path';
import { gunzipFile } from '../archives/gunzip.ts';
import { readTarEntries } from '../archives/tar.ts';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { readZipEntries } from '../archives/zip.ts';
import { MAX_METADATA_BYTES, type PythonMetadata, parsePythonMetadata } from './python-metadata.ts';

const PKG_INFO = /^(?:\.\/)?[^/]+\/PKG-INFO$/;
/** Larger than any source distribution, and still decompressed in seconds. */
const MAX_DECOMPRESSED_BYTES = 2 ** 30;

/** Reads the metadata of a source distribution: a .tar.gz file, or a .zip file of an old one. */
export async function readSdist(path: string): Promise<PythonMetadata> {
  const entries = path.endsWith('.zip')
    ? readZipEntries(path)
    : readTarEntries(gunzipFile(path, MAX_DECOMPRESSED_BYTES));
  for await (const { name, time, read } of entries) {
    if (PKG_INFO.test(name)) return parsePythonMetadata(await read(MAX_METADATA_BYTES), basename(path), time);
  }
  throw new UnreadableFileError('is not a source distribution: it contains no PKG-INFO');
}
