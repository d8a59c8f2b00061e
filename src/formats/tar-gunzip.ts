import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { UnreadableFile } from './unreadable-file.ts';

/** What a gzip file unpacks to, as it is read. A bomb goes off only up to `most` bytes. Throws UnreadableFile. */
export async function* gunzipped(path: string, most: number): AsyncGenerator<Buffer> {
  // Whoever stops reading closes both; what goes wrong is thrown where it is read.
  const unpacked = pipeline(createReadStream(path), createGunzip(), () => {});
  let total = 0;
  try {
    for await (const chunk of unpacked) {
      total += (chunk as Buffer).length;
      if (total > most) throw new UnreadableFile(`unpacks to more than ${most} bytes`);
      yield chunk as Buffer;
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')) {
      throw new UnreadableFile(`is no gzip file, or a damaged one: ${error.message}`);
    }
    throw error;
  }
}
