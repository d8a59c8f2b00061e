import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Terminal } from '../output/terminal.ts';

/** Where an export goes. */
export interface Outlet {
  /** How many files there are by now. */
  readonly files: number;
  /** Writes what belongs to one package. Returns when there is room for more. */
  write(packageName: string, ending: string, text: string): Promise<void>;
  close(): Promise<void>;
}

/** A file for each package. */
export async function openDirectory(directory: string): Promise<Outlet> {
  await mkdir(directory, { recursive: true });
  let files = 0;
  return {
    get files() {
      return files;
    },
    async write(packageName, ending, text) {
      await writeFile(join(directory, `${fileNameOf(packageName)}${ending}`), text.endsWith('\n') ? text : `${text}\n`);
      files++;
    },
    async close() {},
  };
}

/** Longer names are more than a file system takes, with an ending. */
const LONGEST = 200;

/** Names of packages have slashes, or a dot in front. What is too long is cut, and told apart by its hash. */
export function fileNameOf(packageName: string): string {
  const name = encodeURIComponent(packageName).replace(/^\./, '%2E').replaceAll('*', '%2A');
  if (name.length <= LONGEST) return name;
  return `${name.slice(0, LONGEST - 17)}-${createHash('sha256').update(packageName).digest('hex').slice(0, 16)}`;
}

/** One file of lines, or standard output. */
export async function openLines(path: string | undefined, { out }: Terminal): Promise<Outlet> {
  if (path === undefined) {
    return {
      files: 0,
      async write(_name, _ending, text) {
        out(`${text}\n`);
        if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
      },
      async close() {},
    };
  }
  const stream = createWriteStream(path);
  await once(stream, 'open');
  // A full disk may make itself known between two writes, when nobody waits for it.
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure = error;
  });
  return {
    files: 1,
    async write(_name, _ending, text) {
      if (failure) throw failure;
      if (!stream.write(`${text}\n`)) await once(stream, 'drain');
    },
    async close() {
      stream.end();
      await finished(stream);
    },
  };
}
