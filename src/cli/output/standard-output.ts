import { fstatSync, writeSync } from 'node:fs';

/**
 * Returns a function that writes to standard output. `onFailure` is called once, if not everything could be written. A
 * reader that closes a pipe early, as in `wharf --help | head -1`, is not a failure.
 */
export function createStandardOutput(onFailure: (error: Error) => void): (text: string) => void {
  let hasFailed = false;
  const fail = (error: NodeJS.ErrnoException): void => {
    if (hasFailed || error.code === 'EPIPE') return;
    hasFailed = true;
    onFailure(error);
  };
  process.stdout.on('error', fail);
  if (!isFile()) return (text) => void process.stdout.write(text);
  return (text) => {
    if (hasFailed) return;
    try {
      writeAll(Buffer.from(text));
    } catch (error) {
      fail(error as NodeJS.ErrnoException);
    }
  };
}

/** A file, or a device such as /dev/full. */
function isFile(): boolean {
  const stats = fstatSync(1);
  return stats.isFile() || (stats.isCharacterDevice() && !process.stdout.isTTY);
}

/** On a disk that is almost full, the system writes a part and reports no error. `process.stdout` stops there. */
function writeAll(bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(1, bytes, written);
}
