import { crc32 } from 'node:zlib';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { UnreadableFileError } from './unreadable-file-error.ts';

/** More than any package has. The directory of a zip file may be forged. */
const MAX_ENTRIES = 500_000;

export interface ZipEntry {
  /** Never a path outside of the archive. */
  readonly name: string;
  /** In milliseconds. Zip files have no time zone, so the time is read as UTC. */
  readonly time: number;
  /** Reads the content. Only valid until the next entry is read. Refuses entries of more than `maxBytes`. */
  read(maxBytes: number): Promise<Buffer>;
}

/** Iterates the entries of a zip file without writing to disk. Throws an UnreadableFileError if it is damaged. */
export async function* readZipEntries(path: string): AsyncGenerator<ZipEntry> {
  const zip = await openPromise(path, { lazyEntries: true, autoClose: false }).catch(rethrowAsUnreadable);
  try {
    if (zip.entryCount > MAX_ENTRIES) throw new UnreadableFileError(`has more than ${MAX_ENTRIES} entries`);
    const entries = zip.eachEntry();
    for (;;) {
      const { value: entry, done } = await entries.next().catch(rethrowAsUnreadable);
      if (done || !entry) return;
      yield { name: entry.fileName, time: timeOf(entry), read: (maxBytes) => readEntry(zip, entry, maxBytes) };
    }
  } finally {
    zip.close();
  }
}

const timeOf = (entry: Entry): number => entry.getLastModDate({ timezone: 'UTC' }).getTime();

async function readEntry(zip: ZipFile, entry: Entry, maxBytes: number): Promise<Buffer> {
  const { fileName } = entry;
  if (entry.uncompressedSize > maxBytes)
    throw new UnreadableFileError(`has a ${fileName} of more than ${maxBytes} bytes`);
  const chunks: Buffer[] = [];
  try {
    // The stream fails when the content is longer than the size in the directory.
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
  } catch (error) {
    rethrowAsUnreadable(error);
  }
  const content = Buffer.concat(chunks);
  if (crc32(content) !== entry.crc32)
    throw new UnreadableFileError(`is damaged: ${fileName} does not match its checksum`);
  return content;
}

function rethrowAsUnreadable(error: unknown): never {
  // Errors of the file system, such as a missing file, are not about the content.
  if (error instanceof Error && 'code' in error && 'syscall' in error) throw error;
  throw new UnreadableFileError(`is not a zip file, or is damaged: ${error instanceof Error ? error.message : error}`);
}
