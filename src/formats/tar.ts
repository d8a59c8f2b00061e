import { type ByteReader, byteReader } from './tar-bytes.ts';
import { UnreadableFile } from './unreadable-file.ts';

const BLOCK = 512;
/** For the name of the next entry, which is all we read of such headers. */
const MAX_EXTENSION = 64 * 1024;

export interface TarEntry {
  readonly name: string;
  readonly size: number;
  /** In milliseconds; NaN, or far away, where the archive says so: a time before 1970 keeps nothing out. */
  readonly time: number;
  readonly isFile: boolean;
  /** Its content, while the entry is the current one. */
  read(most: number): Promise<Buffer>;
}

/** The entries of a tar archive (ustar, pax, GNU) as it streams by. Nothing is written to disk. Throws UnreadableFile. */
export async function* tarEntries(archive: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const bytes = byteReader(archive);
  try {
    let longName: string | undefined;
    for (;;) {
      const header = await readHeader(bytes);
      if (header === undefined) return;
      const { size, type } = header;
      const padded = Math.ceil(size / BLOCK) * BLOCK;
      if (type === 'L' || type === 'x') {
        if (size > MAX_EXTENSION) throw noTar();
        const content = (await bytes.take(padded)).subarray(0, size);
        longName = type === 'L' ? textOf(content) : (paxPath(content) ?? longName);
        continue;
      }
      let rest = padded;
      yield {
        ...header,
        name: longName ?? header.name,
        isFile: type === '0' || type === '\0',
        async read(most) {
          if (size > most) throw new UnreadableFile(`has a ${longName ?? header.name} of more than ${most} bytes`);
          rest = 0;
          return (await bytes.take(padded)).subarray(0, size);
        },
      };
      await bytes.skip(rest);
      longName = undefined;
    }
  } finally {
    await bytes.close();
  }
}

const noTar = (): UnreadableFile => new UnreadableFile('is no tar archive, or a damaged one');

interface Header {
  readonly name: string;
  readonly size: number;
  readonly time: number;
  readonly type: string;
}

/** Nothing at the end of the archive, which is a block of zeros, or just the end. */
async function readHeader(bytes: ByteReader): Promise<Header | undefined> {
  if (await bytes.isAtEnd()) return undefined;
  const block = await bytes.take(BLOCK);
  if (block.every((byte) => byte === 0)) return undefined;
  const checksum = block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  const size = numberAt(block, 124, 12);
  if (numberAt(block, 148, 8) !== checksum || !Number.isSafeInteger(size)) throw noTar();
  const prefix = block.subarray(257, 262).toString('latin1') === 'ustar' ? textOf(block.subarray(345, 500)) : '';
  const name = textOf(block.subarray(0, 100));
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size,
    time: numberAt(block, 136, 12) * 1000,
    type: String.fromCharCode(block[156] ?? 0),
  };
}

/** Up to the first zero. */
function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

/** Octal digits; or, where those are not enough, bytes behind a set first bit (GNU). What is no number is NaN. */
function numberAt(block: Buffer, at: number, length: number): number {
  const field = block.subarray(at, at + length);
  const isBinary = ((field[0] ?? 0) & 0x80) !== 0;
  return isBinary ? field.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0) : octal(textOf(field).trim());
}

const octal = (digits: string): number =>
  digits === '' ? 0 : /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;

/** The `path` among records of the form `<length> <key>=<value>\n` (POSIX pax). */
function paxPath(records: Buffer): string | undefined {
  let path: string | undefined;
  for (let at = 0; at < records.length; ) {
    const space = records.indexOf(0x20, at);
    const length = Number(records.toString('latin1', at, space));
    if (space < 0 || !Number.isInteger(length) || length <= space - at) return path;
    const record = records.toString('utf8', space + 1, at + length - 1);
    if (record.startsWith('path=')) path = record.slice('path='.length);
    at += length;
  }
  return path;
}
