import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { JsonValue } from '@bufbuild/protobuf';
import type { DecodeResult } from '../../formats/strict-json.ts';
import { errorMessage } from '../error-message.ts';
import { usageError } from '../exit-codes.ts';
import { type Document, documentsIn, isZip, type UnreadableDocument } from './documents.ts';
import { findFiles, type SourceFile } from './files.ts';
import type { ImportItem, Refusal } from './import-item.ts';
import type { ReadProgress } from './progress.ts';
import { documentsInZip } from './zip.ts';

/** The maximum size of a decompressed document. Parsing takes many times as much memory. */
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

/** Files and directories to import from, or `-` for standard input. */
export interface Source {
  readonly progress: ReadProgress;
  /** Yields the records that `decode` finds in the documents. */
  items<T extends JsonValue>(decode: (text: string) => readonly DecodeResult<T>[]): AsyncGenerator<ImportItem<T>>;
}

export async function openSource(paths: readonly string[], limit = MAX_DOCUMENT_BYTES): Promise<Source> {
  const progress: { read: number; total: number | undefined } = { read: 0, total: undefined };
  const skipped: Refusal[] = [];
  const isStandardInput = paths.includes('-');
  if (isStandardInput && paths.length > 1) throw usageError("give either '-' for standard input or paths, not both");
  const files = isStandardInput ? [] : await findFiles(paths, (refusal) => skipped.push(refusal));
  if (!isStandardInput && files.length + skipped.length === 0) {
    throw usageError(
      `no files to import in ${paths.join(', ')}: file names must end in .yaml, .json, .jsonl, .gz or .zip`,
    );
  }
  if (!isStandardInput) progress.total = files.reduce((sum, { size }) => sum + size, 0);
  const onRead = (bytes: number): void => {
    progress.read += bytes;
  };

  async function* documents(): AsyncGenerator<Document | UnreadableDocument> {
    if (isStandardInput) yield* documentsIn('-', process.stdin, limit);
    for (const file of files) yield* documentsOf(file, limit, onRead);
  }
  return {
    progress,
    async *items(decode) {
      yield* skipped;
      for await (const document of documents()) {
        const { location } = document;
        if ('reason' in document) yield { location, id: '', field: '', reason: document.reason };
        else for (const decoded of decode(document.text)) yield { location, ...decoded };
      }
    },
  };
}

async function* documentsOf(
  { path, isStream }: SourceFile,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Document | UnreadableDocument> {
  try {
    if (!isStream && isZip(await firstBytes(path))) yield* documentsInZip(path, limit, onRead);
    else yield* documentsIn(path, readCounted(path, onRead), limit);
  } catch (error) {
    yield { location: { file: path }, reason: `cannot be read: ${errorMessage(error)}` };
  }
}

async function firstBytes(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4));
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function* readCounted(path: string, onRead: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    onRead(chunk.length);
    yield chunk;
  }
}
