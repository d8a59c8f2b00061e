import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { messageOf } from '../failure.ts';
import { type Document, documentsIn, type Unreadable } from './documents.ts';

/** The documents in the files of a zip archive, one file after the other. `onRead` learns of the bytes that are done. */
export async function* documentsInZip(
  path: string,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Document | Unreadable> {
  let zip: ZipFile | undefined;
  try {
    zip = await openPromise(path, { lazyEntries: true, autoClose: false });
    for await (const entry of zip.eachEntry()) {
      if (!entry.fileName.endsWith('/')) yield* documentsInEntry(zip, entry, path, limit);
      onRead(entry.compressedSize);
    }
  } catch (error) {
    yield { origin: { file: path }, reason: `is a damaged zip archive: ${messageOf(error)}` };
  } finally {
    zip?.close();
  }
}

/** A damaged file keeps the others of the archive no longer out than itself. */
async function* documentsInEntry(
  zip: ZipFile,
  entry: Entry,
  path: string,
  limit: number,
): AsyncGenerator<Document | Unreadable> {
  const file = `${path}!${entry.fileName}`;
  try {
    yield* documentsIn(file, await zip.openReadStreamPromise(entry), limit);
  } catch (error) {
    yield { origin: { file }, reason: `is damaged: ${messageOf(error)}` };
  }
}
