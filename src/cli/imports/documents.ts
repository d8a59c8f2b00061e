import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { SourceLocation } from './import-item.ts';

/** A text that contains records: a file, or a line of a file. */
export interface Document {
  readonly location: SourceLocation;
  readonly text: string;
}

/** A file or line that cannot be read, and why. */
export interface UnreadableDocument {
  readonly location: SourceLocation;
  readonly reason: string;
}

type Chunks = AsyncIterable<Buffer>;

const NEWLINE = 0x0a;
const isGzip = (head: Buffer): boolean => head[0] === 0x1f && head[1] === 0x8b;
/** The signatures of an entry and of an empty archive. */
export const isZip = (head: Buffer): boolean => ['504b0304', '504b0506'].includes(head.toString('hex', 0, 4));
const isCompressed = (head: Buffer): boolean => isGzip(head) || isZip(head);

/** Files that are compressed twice exist. The limit is for files that decompress to themselves. */
const MAX_COMPRESSIONS = 3;

/**
 * Yields the documents in a stream of bytes: each line of JSON lines, else the whole stream. Decompresses gzip.
 * At most `limit` bytes are in memory, so that a small file cannot decompress to one that exhausts the memory.
 */
export async function* documentsIn(
  file: string,
  chunks: Chunks,
  limit: number,
  compressions = 0,
): AsyncGenerator<Document | UnreadableDocument> {
  const { head, all, close } = await peek(chunks, limit);
  try {
    const problem = problemWith(head, compressions);
    if (problem !== undefined) yield { location: { file }, reason: problem };
    else if (isGzip(head)) yield* decompressed(file, all, limit, compressions + 1);
    else if (isJsonLines(head)) yield* lineDocuments(file, all, limit);
    else yield await wholeDocument(file, all, limit);
  } finally {
    await close();
  }
}

function problemWith(head: Buffer, compressions: number): string | undefined {
  if (isZip(head)) return 'is a zip archive inside of another file or on standard input; give it as a file';
  if (isGzip(head) && compressions >= MAX_COMPRESSIONS) return `is compressed more than ${MAX_COMPRESSIONS} times`;
  return head.toString('latin1').trim() === '' ? 'is empty' : undefined;
}

interface PeekedStream {
  readonly head: Buffer;
  /** The whole stream, with the head. */
  readonly all: Chunks;
  close(): Promise<unknown>;
}

/** Reads up to the end of the first line that is not blank. */
async function peek(chunks: Chunks, limit: number): Promise<PeekedStream> {
  const iterator = chunks[Symbol.asyncIterator]();
  const parts: Buffer[] = [];
  let first: Buffer | undefined;
  for (let length = 0, hasBegun = false; length < limit; ) {
    const { value, done } = await iterator.next();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (first === undefined && length > 3) {
      first = Buffer.concat(parts);
      if (isCompressed(first)) break;
    }
    const begin: number = hasBegun ? 0 : value.toString('latin1').search(/\S/);
    hasBegun = begin >= 0;
    if (hasBegun && value.indexOf(NEWLINE, begin) >= 0) break;
  }
  const head = Buffer.concat(parts);
  async function* all(): AsyncGenerator<Buffer> {
    yield head;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return { head, all: all(), close: async () => iterator.return?.() };
}

/** Whether the first line is a complete JSON object. A file with one such line can be read either way. */
function isJsonLines(head: Buffer): boolean {
  const [line = ''] = head.toString('latin1').trimStart().split('\n', 1);
  return /^\{.*\}\s*$/.test(line);
}

async function* decompressed(
  file: string,
  chunks: Chunks,
  limit: number,
  compressions: number,
): AsyncGenerator<Document | UnreadableDocument> {
  const gunzip = createGunzip();
  // Errors surface when the other end of the pipeline is read.
  pipeline(Readable.from(chunks), gunzip, () => {});
  try {
    yield* documentsIn(file, gunzip, limit, compressions);
  } catch (error) {
    if (!/^Z_|^ERR_STREAM_PREMATURE/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
    yield { location: { file }, reason: 'is damaged: it cannot be decompressed to its end' };
  }
}

async function* lineDocuments(
  file: string,
  chunks: Chunks,
  limit: number,
): AsyncGenerator<Document | UnreadableDocument> {
  let line = 0;
  let pending: Buffer[] = [];
  let length = 0;
  const take = (): Document | UnreadableDocument | undefined => {
    const bytes = Buffer.concat(pending);
    const tooLong = length > limit;
    [pending, length] = [[], 0];
    const location = { file, line: ++line };
    if (tooLong) return { location, reason: tooLargeReason(limit) };
    return bytes.toString('latin1').trim() === '' ? undefined : decodeText(location, bytes);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      const document = take();
      if (document) yield document;
    }
    add(chunk.subarray(start));
  }
  const last = length > 0 ? take() : undefined;
  if (last) yield last;

  /** Drops the content of a line that is too long. */
  function add(part: Buffer): void {
    length += part.length;
    if (length <= limit) pending.push(part);
    else pending = [];
  }
}

async function wholeDocument(file: string, chunks: Chunks, limit: number): Promise<Document | UnreadableDocument> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > limit) return { location: { file }, reason: tooLargeReason(limit) };
    parts.push(chunk);
  }
  return decodeText({ file }, Buffer.concat(parts));
}

const tooLargeReason = (limit: number): string => `is larger than ${limit} bytes, the maximum of a record`;

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeText(location: SourceLocation, bytes: Buffer): Document | UnreadableDocument {
  try {
    return { location, text: utf8.decode(bytes) };
  } catch {
    return { location, reason: 'is not UTF-8 text' };
  }
}
