import { fstatSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const STANDARD_ERROR = 2;

/** Lines that wait for a reader. Further ones are dropped and counted. */
const MAX_WAITING_BYTES = 2 ** 20;

const FLUSH_POLL_MS = 10;

/** Where log lines go. Writing never throws and never waits for a reader. */
export interface LogOutput {
  write(line: string): void;
  /** Waits until all lines are written, but no longer than `timeoutMs`. */
  flush(timeoutMs: number): Promise<void>;
}

/** The part of a writable stream that a log uses. */
export interface LogStream {
  /** Bytes that wait to be written. */
  readonly writableLength: number;
  write(line: string): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

let standardError: LogOutput | undefined;

/** Writes to standard error. All logs of a process share the output. */
export function standardErrorOutput(): LogOutput {
  // Node ends its stream for a file at the first error, such as a full disk.
  standardError ??= fstatSync(STANDARD_ERROR).isFile() ? fileOutput(STANDARD_ERROR) : streamOutput(process.stderr);
  return standardError;
}

/**
 * Writes to a pipe, a socket or a terminal. Node passes a line to the operating system at once if it has room, so the
 * last line before an exit is not lost. If the reader does not read, lines wait in memory up to a limit. If the reader
 * has ended (EPIPE), all further lines are dropped.
 */
export function streamOutput(stream: LogStream, maxWaitingBytes = MAX_WAITING_BYTES): LogOutput {
  const drops = countDrops((line) => stream.write(line));
  let hasReader = true;
  stream.on('error', () => {
    hasReader = false;
  });
  return {
    write(line) {
      if (!hasReader) return;
      if (stream.writableLength + line.length > maxWaitingBytes) return drops.add();
      drops.report();
      stream.write(line);
    },
    async flush(timeoutMs) {
      const end = performance.now() + timeoutMs;
      while (hasReader && stream.writableLength > 0 && performance.now() < end) await delay(FLUSH_POLL_MS);
    },
  };
}

/** Writes to a file. Lines that cannot be written, for example to a full disk, are dropped and counted. */
export function fileOutput(file: number): LogOutput {
  const drops = countDrops((line) => writeSync(file, line));
  return {
    write(line) {
      try {
        drops.report();
        writeSync(file, line);
      } catch {
        drops.add();
      }
    },
    flush: () => Promise.resolve(),
  };
}

/** Counts dropped lines, and says so in a line of its own as soon as lines can be written again. */
function countDrops(write: (line: string) => unknown) {
  let dropped = 0;
  return {
    add(): void {
      dropped++;
    },
    report(): void {
      if (dropped === 0) return;
      const time = new Date().toISOString();
      write(`${JSON.stringify({ level: 'warn', time, dropped, message: 'log lines could not be written' })}\n`);
      dropped = 0;
    },
  };
}
