import { crc32, deflateRawSync, gzipSync } from 'node:zlib';

/** A file to put into an archive. */
export interface ArchiveFile {
  readonly name: string;
  readonly content: string | Buffer;
  /** In milliseconds. Use even seconds: zip files store times in steps of two seconds. */
  readonly time?: number;
  /** The size that the archive states, if it is not the real size. */
  readonly statedSize?: number;
}

const DEFAULT_TIME = Date.UTC(2024, 4, 6, 7, 8, 10);

/** A zip file (APPNOTE.TXT): local headers with data, the central directory, and the end record. */
export function zipOf(files: readonly ArchiveFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, time = DEFAULT_TIME, statedSize: claims } of files) {
    const raw = Buffer.from(content);
    const data = deflateRawSync(raw);
    const path = Buffer.from(name);
    const common = Buffer.concat([
      u16(20, 0x0800, 8, ...dosTime(time)),
      u32(crc32(raw), data.length, claims ?? raw.length),
      u16(path.length, 0),
    ]);
    const local = Buffer.concat([u32(0x04034b50), common, path, data]);
    directory.push(u32(0x02014b50), u16(20), common, u16(0, 0, 0), u32(0, offset), path);
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = [u32(0x06054b50), u16(0, 0, files.length, files.length), u32(central.length, offset), u16(0)];
  return Buffer.concat([...parts, central, ...end]);
}

const u16 = (...values: number[]): Buffer => Buffer.from(new Uint16Array(values).buffer);
const u32 = (...values: number[]): Buffer => Buffer.from(new Uint32Array(values).buffer);

function dosTime(ms: number): [time: number, date: number] {
  const t = new Date(ms);
  return [
    (t.getUTCHours() << 11) | (t.getUTCMinutes() << 5) | (t.getUTCSeconds() >> 1),
    ((t.getUTCFullYear() - 1980) << 9) | ((t.getUTCMonth() + 1) << 5) | t.getUTCDate(),
  ];
}

export interface TarOptions {
  /** The extension that stores file names too long for a header. If set, all names are stored with it. */
  readonly longNames?: 'pax' | 'gnu';
}

/** A tar archive (POSIX ustar). */
export function tarOf(files: readonly ArchiveFile[], { longNames }: TarOptions = {}): Buffer {
  const blocks = files.flatMap(({ name, content, time = DEFAULT_TIME, statedSize: claims }) => {
    const raw = Buffer.from(content);
    const file = [tarHeader(longNames ? 'short' : name, claims ?? raw.length, time, '0'), padded(raw)];
    if (longNames === 'gnu') return [...tarExtension('L', Buffer.from(`${name}\0`)), ...file];
    if (longNames === 'pax') return [...tarExtension('x', paxRecord('path', name)), ...file];
    return file;
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export const tarGzOf = (files: readonly ArchiveFile[], options?: TarOptions): Buffer => gzipSync(tarOf(files, options));

const tarExtension = (type: string, content: Buffer): Buffer[] => [
  tarHeader('././@LongLink', content.length, 0, type),
  padded(content),
];

/** The length in front of a record includes its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

function tarHeader(path: string, size: number, time: number, type: string): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, at: number, length: number) =>
    header.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
  // A path longer than 100 bytes is split at a slash into prefix and name.
  const split = path.length > 100 ? path.indexOf('/', path.length - 101) : -1;
  header.write(path.slice(split + 1), 0);
  if (split > 0) header.write(path.slice(0, split), 345);
  octal(0o644, 100, 8);
  octal(size, 124, 12);
  octal(Math.trunc(time / 1000), 136, 12);
  header.write('        ', 148);
  header.write(type, 156);
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

const padded = (content: Buffer): Buffer =>
  Buffer.concat([content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
