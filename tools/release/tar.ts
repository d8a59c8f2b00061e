/** An entry of a tar archive. Owners have no names, and all entries have the same time. */
export interface TarEntry {
  /** Relative, with `/` between its parts and without one at its end. */
  readonly path: string;
  readonly mode: number;
  /** The owner and the group; root without it. */
  readonly uid?: number;
  readonly content: Buffer | { readonly linkTo: string } | 'directory';
}

const BLOCK = 512;
const NAME_BYTES = 100;

/**
 * Returns a tar archive (POSIX pax) of the entries, sorted by path, with the directories that lead to them. The same
 * entries and time give the same bytes, on every machine.
 */
export function tarOf(entries: readonly TarEntry[], time: Date): Buffer {
  const byPath = new Map<string, TarEntry>();
  for (const { path } of entries) {
    for (let end = path.indexOf('/'); end > 0; end = path.indexOf('/', end + 1)) {
      const directory = path.slice(0, end);
      byPath.set(directory, { path: directory, mode: 0o755, content: 'directory' });
    }
  }
  for (const entry of entries) byPath.set(entry.path, entry);
  const sorted = [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  return Buffer.concat([...sorted.flatMap((entry) => blocksOf(entry, time)), Buffer.alloc(2 * BLOCK)]);
}

function blocksOf(entry: TarEntry, time: Date): Buffer[] {
  const { content } = entry;
  if (content === 'directory') return headers(`${entry.path}/`, entry, '5', 0, '', time);
  if (Buffer.isBuffer(content))
    return [...headers(entry.path, entry, '0', content.length, '', time), ...padded(content)];
  return headers(entry.path, entry, '2', 0, content.linkTo, time);
}

/** The header of an entry, after an extended header if its name or link is too long for it. */
function headers(path: string, entry: TarEntry, type: string, size: number, linkTo: string, time: Date): Buffer[] {
  const records = [paxRecord('path', path), paxRecord('linkpath', linkTo)].filter((record) => record !== '');
  const extension = Buffer.from(records.join(''));
  return [
    ...(extension.length > 0
      ? [
          header('pax', { path: '', mode: 0o644, content: extension }, 'x', extension.length, '', time),
          ...padded(extension),
        ]
      : []),
    header(path, entry, type, size, linkTo, time),
  ];
}

function header(path: string, entry: TarEntry, type: string, size: number, linkTo: string, time: Date): Buffer {
  const block = Buffer.alloc(BLOCK);
  const owner = octal(entry.uid ?? 0, 8);
  const seconds = octal(Math.floor(time.getTime() / 1000), 12);
  block.write(path, 0, NAME_BYTES);
  block.write(octal(entry.mode, 8) + owner + owner + octal(size, 12) + seconds, 100, 'latin1');
  block.write(`        ${type}`, 148, 'latin1');
  block.write(linkTo, 157, NAME_BYTES);
  block.write('ustar\x0000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

const octal = (value: number, bytes: number): string => `${value.toString(8).padStart(bytes - 1, '0')}\0`;

/** Returns the record of a value that is too long for its header field, otherwise ''. */
function paxRecord(key: string, value: string): string {
  if (Buffer.byteLength(value) <= NAME_BYTES) return '';
  // The length in front of a record includes its own digits.
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

const padded = (content: Buffer): Buffer[] => [content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)];

/** A file, by default one that everyone can read. */
export const fileEntry = (path: string, content: string | Buffer, mode = 0o644): TarEntry => ({
  path,
  mode,
  content: Buffer.from(content),
});

export const linkEntry = (path: string, linkTo: string): TarEntry => ({ path, mode: 0o777, content: { linkTo } });

/** Puts entries below a directory. */
export const below = (directory: string, entries: readonly TarEntry[]): TarEntry[] =>
  entries.map((entry) => ({ ...entry, path: `${directory}/${entry.path}` }));
