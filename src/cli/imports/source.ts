import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import type { JsonValue } from '@bufbuild/protobuf';
import type { Decoded } from '../../formats/reading.ts';
import { misused } from '../exit-codes.ts';
import { messageOf } from '../failure.ts';
import { type Document, documentsIn, isZip, type Unreadable } from './documents.ts';
import { type Found, findFiles } from './files.ts';
import type { Item, Refused } from './item.ts';
import type { Reading } from './progress.ts';
import { documentsInZip } from './zip.ts';

/** The most that one document may have, unpacked: what is parsed as a whole takes many times as much memory. */
const LIMIT = 8 * 1024 * 1024;

/** Files and directories to import from, or `-` for standard input. */
export interface Source {
  readonly reading: Reading;
  /** Every record that `decode` finds in every document, one by one. */
  items<T extends JsonValue>(decode: (text: string) => readonly Decoded<T>[]): AsyncGenerator<Item<T>>;
}

export async function openSource(paths: readonly string[], limit = LIMIT): Promise<Source> {
  const reading: { read: number; total: number | undefined } = { read: 0, total: undefined };
  const passedOver: Refused[] = [];
  const isStandardInput = paths.includes('-');
  if (isStandardInput && paths.length > 1) throw misused("give either '-' for standard input, or paths");
  const files = isStandardInput ? [] : await findFiles(paths, (refused) => passedOver.push(refused));
  if (!isStandardInput && files.length + passedOver.length === 0) {
    throw misused(`nothing to read in ${paths.join(', ')}: no name ends in .yaml, .json, .jsonl, .gz or .zip`);
  }
  if (!isStandardInput) reading.total = files.reduce((sum, { size }) => sum + size, 0);
  const onRead = (bytes: number): void => {
    reading.read += bytes;
  };

  async function* documents(): AsyncGenerator<Document | Unreadable> {
    if (isStandardInput) yield* documentsIn('-', process.stdin, limit);
    for (const file of files) yield* documentsOf(file, limit, onRead);
  }
  return {
    reading,
    async *items(decode) {
      yield* passedOver;
      for await (const document of documents()) {
        const { origin } = document;
        if ('reason' in document) yield { origin, id: '', field: '', reason: document.reason };
        else for (const decoded of decode(document.text)) yield { origin, ...decoded };
      }
    },
  };
}

async function* documentsOf(
  { path, isStream }: Found,
  limit: number,
  onRead: (bytes: number) => void,
): AsyncGenerator<Document | Unreadable> {
  try {
    if (!isStream && isZip(await firstBytes(path))) yield* documentsInZip(path, limit, onRead);
    else yield* documentsIn(path, counted(path, onRead), limit);
  } catch (error) {
    yield { origin: { file: path }, reason: `cannot be read: ${messageOf(error)}` };
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

async function* counted(path: string, onRead: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    onRead(chunk.length);
    yield chunk;
  }
}
