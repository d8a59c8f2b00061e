import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { errorMessage } from '../error-message.ts';
import { type Document, documentsIn, type UnreadableDocument } from './documents.ts';

/** Yields the documents in the files of a zip archive. Calls `onRead` with the number of compressed bytes read. */
export async function* documentsInZip(
  path: string,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Document | UnreadableDocument> {
  let zip: ZipFile | undefined;
  try {
    zip = await openPromise(path, { lazyEntries: true, autoClose: false });
    for await (const entry of zip.eachEntry()) {
      if (!entry.fileName.endsWith('/')) yield* documentsInEntry(zip, entry, path, limit);
      onRead(entry.compressedSize);
    }
  } catch (error) {
    yield { location: { file: path }, reason: `is a damaged zip archive: ${errorMessage(error)}` };
  } finally {
    zip?.close();
  }
}

/** A damaged file is refused. The other files of the archive are still read. */
async function* documentsInEntry(
  zip: ZipFile,
  entry: Entry,
  path: string,
  limit: number,
): AsyncGenerator<Document | UnreadableDocument> {
  const file = `${path}!${entry.fileName}`;
  try {
    yield* documentsIn(file, await zip.openReadStreamPromise(entry), limit);
  } catch (error) {
    yield { location: { file }, reason: `is damaged: ${errorMessage(error)}` };
  }
}
