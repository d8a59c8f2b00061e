import { basename } from 'node:path';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { readZipEntries } from '../archives/zip.ts';
import { MAX_METADATA_BYTES, type PythonMetadata, parsePythonMetadata } from './python-metadata.ts';

const METADATA = /^[^/]+\.dist-info\/METADATA$/;

/** Reads the metadata of a wheel (PEP 427). */
export async function readWheel(path: string): Promise<PythonMetadata> {
  for await (const { name, time, read } of readZipEntries(path)) {
    if (METADATA.test(name)) return parsePythonMetadata(await read(MAX_METADATA_BYTES), basename(path), time);
  }
  throw new UnreadableFileError('is not a wheel: it contains no METADATA');
}
