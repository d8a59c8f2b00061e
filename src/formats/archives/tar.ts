import { type ByteReader, createByteReader } from './byte-reader.ts';
import { UnreadableFileError } from './unreadable-file-error.ts';

const BLOCK = 512;
/** The size limit of an extension header. Only the name of the next entry is read from it. */
const MAX_EXTENSION_BYTES = 64 * 1024;

export interface TarEntry {
  readonly name: string;
  readonly size: number;
  /** In milliseconds. NaN or out of range if the archive has an invalid time: that does not make it unreadable. */
  readonly time: number;
  readonly isFile: boolean;
  /** Reads the content. Only valid until the next entry is read. Refuses entries of more than `maxBytes`. */
  read(maxBytes: number): Promise<Buffer>;
}

/**
 * Iterates the entries of a tar stream (ustar, pax, GNU) without writing to disk. Throws an UnreadableFileError if it
 * is damaged.
 */
export async function* readTarEntries(archive: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const bytes = createByteReader(archive);
  try {
    let longName: string | undefined;
    for (;;) {
      const header = await readHeader(bytes);
      if (header === undefined) return;
      const { size, type } = header;
      const padded = Math.ceil(size / BLOCK) * BLOCK;
      if (type === 'L' || type === 'x') {
        if (size > MAX_EXTENSION_BYTES) throw notTar();
        const content = (await bytes.read(padded)).subarray(0, size);
        longName = type === 'L' ? textOf(content) : (paxPath(content) ?? longName);
        continue;
      }
      let unread = padded;
      yield {
        ...header,
        name: longName ?? header.name,
        isFile: type === '0' || type === '\0',
        async read(maxBytes) {
          if (size > maxBytes)
            throw new UnreadableFileError(`has a ${longName ?? header.name} of more than ${maxBytes} bytes`);
          unread = 0;
          return (await bytes.read(padded)).subarray(0, size);
        },
      };
      await bytes.skip(unread);
      longName = undefined;
    }
  } finally {
    await bytes.close();
  }
}

const notTar = (): UnreadableFileError => new UnreadableFileError('is not a tar archive, or is damaged');

interface Header {
  readonly name: string;
  readonly size: number;
  readonly time: number;
  readonly type: string;
}

/** Returns undefined at the end of the archive, which is a block of zeros or the end of the stream. */
async function readHeader(bytes: ByteReader): Promise<Header | undefined> {
  if (await bytes.isAtEnd()) return undefined;
  const block = await bytes.read(BLOCK);
  if (block.every((byte) => byte === 0)) return undefined;
  const checksum = block.reduce((sum, byte, offset) => sum + (offset >= 148 && offset < 156 ? 0x20 : byte), 0);
  const size = numberAt(block, 124, 12);
  if (numberAt(block, 148, 8) !== checksum || !Number.isSafeInteger(size)) throw notTar();
  const prefix = block.subarray(257, 262).toString('latin1') === 'ustar' ? textOf(block.subarray(345, 500)) : '';
  const name = textOf(block.subarray(0, 100));
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size,
    time: numberAt(block, 136, 12) * 1000,
    type: String.fromCharCode(block[156] ?? 0),
  };
}

/** Text fields end at the first zero byte. */
function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

/** Reads octal digits, or a binary number if the first bit is set (GNU). Returns NaN for anything else. */
function numberAt(block: Buffer, offset: number, length: number): number {
  const field = block.subarray(offset, offset + length);
  const isBinary = ((field[0] ?? 0) & 0x80) !== 0;
  return isBinary ? field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0) : parseOctal(textOf(field).trim());
}

const parseOctal = (digits: string): number =>
  digits === '' ? 0 : /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;

/** The `path` among records of the form `<length> <key>=<value>\n` (POSIX pax). */
function paxPath(records: Buffer): string | undefined {
  let path: string | undefined;
  for (let offset = 0; offset < records.length; ) {
    const space = records.indexOf(0x20, offset);
    const length = Number(records.toString('latin1', offset, space));
    if (space < 0 || !Number.isInteger(length) || length <= space - offset) return path;
    const record = records.toString('utf8', space + 1, offset + length - 1);
    if (record.startsWith('path=')) path = record.slice('path='.length);
    offset += length;
  }
  return path;
}
