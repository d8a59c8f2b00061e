import { closeSync, openSync, writeSync } from 'node:fs';
import { errorMessage } from '../error-message.ts';
import { usageError } from '../exit-codes.ts';
import { type Refusal, refusalText } from './import-item.ts';

/** How many refusals are printed. The file of --refusals contains all of them. */
const MAX_SHOWN = 20;

export interface RefusalLog {
  readonly count: number;
  /** The first refusals. */
  readonly shown: readonly Refusal[];
  add(refusal: Refusal): void;
  close(): void;
}

/** Keeps the first refusals and writes all of them to a file of JSON lines. */
export function createRefusalLog(file: string | undefined): RefusalLog {
  // Opened before anything is sent, so that an invalid path is reported early.
  const fd = file === undefined ? undefined : open(file);
  const shown: Refusal[] = [];
  let count = 0;
  return {
    get count() {
      return count;
    },
    shown,
    add(refusal) {
      count++;
      if (shown.length < MAX_SHOWN) shown.push(refusal);
      if (fd !== undefined) writeSync(fd, `${JSON.stringify(refusalJson(refusal))}\n`);
    },
    close() {
      if (fd !== undefined) closeSync(fd);
    },
  };
}

function open(file: string): number {
  try {
    return openSync(file, 'w');
  } catch (error) {
    throw usageError(`cannot write the refusals to ${file}: ${errorMessage(error)}`);
  }
}

/** `{"file":…,"line":…,"id":…,"field":…,"reason":…}` */
export const refusalJson = ({ location, id, field, reason }: Refusal) => ({ ...location, id, field, reason });

/** One line for each of the first refusals, and the number of the others. */
export function refusalLines({ shown, count }: RefusalLog): string[] {
  const more = count - shown.length;
  return [...shown.map(refusalText), ...(more > 0 ? [`and ${more} more; --refusals <file> lists them all`] : [])];
}
