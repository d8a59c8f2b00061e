import { basename } from 'node:path';
import { UnreadableFile } from './unreadable-file.ts';
import { MAX_METADATA, type PackageFacts, readMetadata } from './wheel-metadata.ts';
import { zipEntries } from './zip.ts';

const METADATA = /^[^/]+\.dist-info\/METADATA$/;

/** Reads what a wheel says about itself (PEP 427). */
export async function readWheel(path: string): Promise<PackageFacts> {
  for await (const { name, time, read } of zipEntries(path)) {
    if (METADATA.test(name)) return readMetadata(await read(MAX_METADATA), basename(path), time);
  }
  throw new UnreadableFile('has no METADATA in it, so it is no wheel');
}
