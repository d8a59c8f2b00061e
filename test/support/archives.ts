import { crc32, deflateRawSync, gzipSync } from 'node:zlib';

/** A file of an archive. */
export interface Packed {
  readonly name: string;
  readonly content: string | Buffer;
  /** In milliseconds; an even second, because that is as fine as zip files go. */
  readonly time?: number;
  /** What the archive says about its size, where that is not the truth. */
  readonly claims?: number;
}

const SOME_TIME = Date.UTC(2024, 4, 6, 7, 8, 10);

/** A zip file as real tools write it (APPNOTE.TXT): local headers with data, the central directory, its end. */
export function zipOf(files: readonly Packed[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, time = SOME_TIME, claims } of files) {
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
  /** How names are told that a header has no room for; always, with either. */
  readonly longNames?: 'pax' | 'gnu';
}

/** A tar archive (POSIX ustar). */
export function tarOf(files: readonly Packed[], { longNames }: TarOptions = {}): Buffer {
  const blocks = files.flatMap(({ name, content, time = SOME_TIME, claims }) => {
    const raw = Buffer.from(content);
    const own = [tarHeader(longNames ? 'short' : name, claims ?? raw.length, time, '0'), padded(raw)];
    if (longNames === 'gnu') return [...tarExtension('L', Buffer.from(`${name}\0`)), ...own];
    if (longNames === 'pax') return [...tarExtension('x', paxRecord('path', name)), ...own];
    return own;
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export const tarGzOf = (files: readonly Packed[], options?: TarOptions): Buffer => gzipSync(tarOf(files, options));

const tarExtension = (type: string, content: Buffer): Buffer[] => [
  tarHeader('././@LongLink', content.length, 0, type),
  padded(content),
];

/** The length counts itself. */
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
  // A path that is too long for the name is cut at a slash.
  const cut = path.length > 100 ? path.indexOf('/', path.length - 101) : -1;
  header.write(path.slice(cut + 1), 0);
  if (cut > 0) header.write(path.slice(0, cut), 345);
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
