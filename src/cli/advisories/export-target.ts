import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Terminal } from '../output/terminal.ts';

/** The directory, file or stream that an export is written to. */
export interface ExportTarget {
  /** The number of files written. */
  readonly files: number;
  /** Writes the advisories of one package. Resolves when more can be written. */
  write(packageName: string, extension: string, text: string): Promise<void>;
  close(): Promise<void>;
}

/** Writes one file per package. */
export async function openDirectoryTarget(directory: string): Promise<ExportTarget> {
  await mkdir(directory, { recursive: true });
  let files = 0;
  return {
    get files() {
      return files;
    },
    async write(packageName, extension, text) {
      await writeFile(
        join(directory, `${fileNameOf(packageName)}${extension}`),
        text.endsWith('\n') ? text : `${text}\n`,
      );
      files++;
    },
    async close() {},
  };
}

/** File systems allow 255 bytes, with the extension. */
const MAX_NAME_LENGTH = 200;

/** Encodes slashes and leading dots. A name that is too long is cut and gets a hash. */
export function fileNameOf(packageName: string): string {
  const name = encodeURIComponent(packageName).replace(/^\./, '%2E').replaceAll('*', '%2A');
  if (name.length <= MAX_NAME_LENGTH) return name;
  return `${name.slice(0, MAX_NAME_LENGTH - 17)}-${createHash('sha256').update(packageName).digest('hex').slice(0, 16)}`;
}

/** Writes lines to a file or to standard output. */
export async function openLinesTarget(path: string | undefined, { out }: Terminal): Promise<ExportTarget> {
  if (path === undefined) {
    return {
      files: 0,
      async write(_name, _extension, text) {
        out(`${text}\n`);
        if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
      },
      async close() {},
    };
  }
  const stream = createWriteStream(path);
  await once(stream, 'open');
  // An error such as a full disk can occur between two writes.
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure = error;
  });
  return {
    files: 1,
    async write(_name, _extension, text) {
      if (failure) throw failure;
      if (!stream.write(`${text}\n`)) await once(stream, 'drain');
    },
    async close() {
      stream.end();
      await finished(stream);
    },
  };
}
