import { basename } from 'node:path';
import { tarEntries } from './tar.ts';
import { gunzipped } from './tar-gunzip.ts';
import { UnreadableFile } from './unreadable-file.ts';
import { MAX_METADATA, type PackageFacts, readMetadata } from './wheel-metadata.ts';
import { zipEntries } from './zip.ts';

const PKG_INFO = /^(?:\.\/)?[^/]+\/PKG-INFO$/;
/** Sources are not larger, and it is read in seconds. */
const MAX_UNPACKED = 2 ** 30;

/** Reads what a source distribution says about itself: a .tar.gz, or a .zip of older days. */
export async function readSdist(path: string): Promise<PackageFacts> {
  const entries = path.endsWith('.zip') ? zipEntries(path) : tarEntries(gunzipped(path, MAX_UNPACKED));
  for await (const { name, time, read } of entries) {
    if (PKG_INFO.test(name)) return readMetadata(await read(MAX_METADATA), basename(path), time);
  }
  throw new UnreadableFile('has no PKG-INFO in it, so it is no source distribution');
}
