import { closeSync, openSync, writeSync } from 'node:fs';
import { misused } from '../exit-codes.ts';
import { messageOf } from '../failure.ts';
import { type Refused, refusalText } from './item.ts';

/** Enough to see what is wrong; the rest goes to a file, if somebody asks for one. */
const SHOWN = 20;

export interface Refusals {
  readonly count: number;
  /** The first of them. */
  readonly shown: readonly Refused[];
  add(refused: Refused): void;
  close(): void;
}

/** Keeps the first refusals, and writes all of them to a file of JSON lines. */
export function keepRefusals(file: string | undefined): Refusals {
  // Opened before anything is sent: a path that cannot be written is worth knowing early.
  const fd = file === undefined ? undefined : open(file);
  const shown: Refused[] = [];
  let count = 0;
  return {
    get count() {
      return count;
    },
    shown,
    add(refused) {
      count++;
      if (shown.length < SHOWN) shown.push(refused);
      if (fd !== undefined) writeSync(fd, `${JSON.stringify(flat(refused))}\n`);
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
    throw misused(`cannot write the refusals to ${file}: ${messageOf(error)}`);
  }
}

/** `{"file":…,"line":…,"id":…,"field":…,"reason":…}` */
export const flat = ({ origin, id, field, reason }: Refused) => ({ ...origin, id, field, reason });

/** The first refusals, a line each, and how many more there are. */
export function refusalLines({ shown, count }: Refusals): string[] {
  const more = count - shown.length;
  return [...shown.map(refusalText), ...(more > 0 ? [`and ${more} more; --refusals <file> lists them all`] : [])];
}
