import { crc32 } from 'node:zlib';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { UnreadableFile } from './unreadable-file.ts';

/** More than any package has; a directory of a zip file may be forged to be endless. */
const MAX_ENTRIES = 500_000;

export interface ZipEntry {
  /** Never one that leads out of the archive. */
  readonly name: string;
  /** In milliseconds, as the archive says; zip files tell no time zone, so it is taken for UTC. */
  readonly time: number;
  /** Its content, while the entry is the current one. Never more than so many bytes, whatever the archive says. */
  read(most: number): Promise<Buffer>;
}

/** The entries of a zip file, one after the other. Nothing is ever written to disk. Throws UnreadableFile. */
export async function* zipEntries(path: string): AsyncGenerator<ZipEntry> {
  const zip = await openPromise(path, { lazyEntries: true, autoClose: false }).catch(damaged);
  try {
    if (zip.entryCount > MAX_ENTRIES) throw new UnreadableFile(`has more than ${MAX_ENTRIES} entries`);
    const entries = zip.eachEntry();
    for (;;) {
      const { value: entry, done } = await entries.next().catch(damaged);
      if (done || !entry) return;
      yield { name: entry.fileName, time: timeOf(entry), read: (most) => readEntry(zip, entry, most) };
    }
  } finally {
    zip.close();
  }
}

const timeOf = (entry: Entry): number => entry.getLastModDate({ timezone: 'UTC' }).getTime();

async function readEntry(zip: ZipFile, entry: Entry, most: number): Promise<Buffer> {
  const { fileName } = entry;
  if (entry.uncompressedSize > most) throw new UnreadableFile(`has a ${fileName} of more than ${most} bytes`);
  const chunks: Buffer[] = [];
  try {
    // Fails as soon as there is more in it than the archive says.
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
  } catch (error) {
    damaged(error);
  }
  const content = Buffer.concat(chunks);
  if (crc32(content) !== entry.crc32) throw new UnreadableFile(`is damaged: ${fileName} does not match its checksum`);
  return content;
}

function damaged(error: unknown): never {
  // A file that cannot be opened at all is a matter of the system, and says so itself.
  if (error instanceof Error && 'code' in error && 'syscall' in error) throw error;
  throw new UnreadableFile(`is no zip file, or a damaged one: ${error instanceof Error ? error.message : error}`);
}
