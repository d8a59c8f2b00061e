import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Origin } from './item.ts';

/** A text with records in it: a file, or one of its lines. */
export interface Document {
  readonly origin: Origin;
  readonly text: string;
}

/** Something that holds no text, and why. */
export interface Unreadable {
  readonly origin: Origin;
  readonly reason: string;
}

type Chunks = AsyncIterable<Buffer>;

const NEWLINE = 0x0a;
const isGzip = (head: Buffer): boolean => head[0] === 0x1f && head[1] === 0x8b;
/** An entry, or an archive without any. */
export const isZip = (head: Buffer): boolean => ['504b0304', '504b0506'].includes(head.toString('hex', 0, 4));
const isPacked = (head: Buffer): boolean => isGzip(head) || isZip(head);

/** Files that are packed twice do exist; there are also some that unpack to themselves. */
const MAX_PACKED = 3;

/**
 * The documents in a stream of bytes: of JSON lines one for each line, of anything else one for all. Gzip is undone.
 * Never more than `limit` bytes are held, so that nothing small can unpack to something that does not fit.
 */
export async function* documentsIn(
  file: string,
  chunks: Chunks,
  limit: number,
  packed = 0,
): AsyncGenerator<Document | Unreadable> {
  const { head, all, close } = await peek(chunks, limit);
  try {
    const problem = problemWith(head, packed);
    if (problem !== undefined) yield { origin: { file }, reason: problem };
    else if (isGzip(head)) yield* unpacked(file, all, limit, packed + 1);
    else if (isJsonLines(head)) yield* lines(file, all, limit);
    else yield await whole(file, all, limit);
  } finally {
    await close();
  }
}

function problemWith(head: Buffer, packed: number): string | undefined {
  if (isZip(head)) return 'is a zip archive where none can be read; give it as a file';
  if (isGzip(head) && packed >= MAX_PACKED) return `is packed more than ${MAX_PACKED} times`;
  return head.toString('latin1').trim() === '' ? 'is empty' : undefined;
}

interface Peeked {
  readonly head: Buffer;
  readonly all: Chunks;
  close(): Promise<unknown>;
}

/** Up to the end of the first line that says something, and a stream from the start all the same. */
async function peek(chunks: Chunks, limit: number): Promise<Peeked> {
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
      if (isPacked(first)) break;
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

/** The first line is a JSON object by itself. A file with one record in one line is the same either way. */
function isJsonLines(head: Buffer): boolean {
  const [line = ''] = head.toString('latin1').trimStart().split('\n', 1);
  return /^\{.*\}\s*$/.test(line);
}

async function* unpacked(
  file: string,
  chunks: Chunks,
  limit: number,
  packed: number,
): AsyncGenerator<Document | Unreadable> {
  const gunzip = createGunzip();
  // What goes wrong here shows where the other end is read.
  pipeline(Readable.from(chunks), gunzip, () => {});
  try {
    yield* documentsIn(file, gunzip, limit, packed);
  } catch (error) {
    if (!/^Z_|^ERR_STREAM_PREMATURE/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
    yield { origin: { file }, reason: 'is damaged: it cannot be unpacked to its end' };
  }
}

async function* lines(file: string, chunks: Chunks, limit: number): AsyncGenerator<Document | Unreadable> {
  let line = 0;
  let pending: Buffer[] = [];
  let length = 0;
  const take = (): Document | Unreadable | undefined => {
    const bytes = Buffer.concat(pending);
    const tooLong = length > limit;
    [pending, length] = [[], 0];
    const origin = { file, line: ++line };
    if (tooLong) return { origin, reason: tooLarge(limit) };
    return bytes.toString('latin1').trim() === '' ? undefined : decoded(origin, bytes);
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

  /** Of a line that is too long, no more is kept than it takes to know. */
  function add(part: Buffer): void {
    length += part.length;
    if (length <= limit) pending.push(part);
    else pending = [];
  }
}

async function whole(file: string, chunks: Chunks, limit: number): Promise<Document | Unreadable> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > limit) return { origin: { file }, reason: tooLarge(limit) };
    parts.push(chunk);
  }
  return decoded({ file }, Buffer.concat(parts));
}

const tooLarge = (limit: number): string => `is larger than ${limit} bytes, more than a record can have`;

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decoded(origin: Origin, bytes: Buffer): Document | Unreadable {
  try {
    return { origin, text: utf8.decode(bytes) };
  } catch {
    return { origin, reason: 'is not UTF-8 text' };
  }
}
