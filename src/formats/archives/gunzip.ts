import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { UnreadableFileError } from './unreadable-file-error.ts';

/** Streams the decompressed content of a gzip file. Throws an UnreadableFileError after `maxBytes`, for gzip bombs. */
export async function* gunzipFile(path: string, maxBytes: number): AsyncGenerator<Buffer> {
  // The pipeline closes both streams when reading stops. Its errors are thrown by the loop below.
  const decompressed = pipeline(createReadStream(path), createGunzip(), () => {});
  let total = 0;
  try {
    for await (const chunk of decompressed) {
      total += (chunk as Buffer).length;
      if (total > maxBytes) throw new UnreadableFileError(`decompresses to more than ${maxBytes} bytes`);
      yield chunk as Buffer;
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')) {
      throw new UnreadableFileError(`is not a gzip file, or is damaged: ${error.message}`);
    }
    throw error;
  }
}
