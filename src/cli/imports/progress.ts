import type { Terminal } from '../output/terminal.ts';

/** How far the reading of the sources is, in bytes; the total is unknown on standard input. */
export interface Reading {
  readonly read: number;
  readonly total: number | undefined;
}

export interface Progress {
  /** Tells that so many records are done by now. */
  tell(records: number): void;
  end(): void;
}

const WATCHED_EVERY_MS = 100;
const LOGGED_EVERY_MS = 5_000;
const CLEAR_LINE = '\x1b[K';
const BAR = 24;

/** A bar that is written over for people who watch; a line now and then for a log; nothing where a program reads. */
export function startProgress(
  { terminal, isQuiet, what }: { terminal: Terminal; isQuiet: boolean; what: string },
  reading: Reading | undefined,
  clock: () => number = () => performance.now(),
): Progress {
  if (isQuiet) return { tell() {}, end() {} };
  const { isWatched } = terminal;
  const every = isWatched ? WATCHED_EVERY_MS : LOGGED_EVERY_MS;
  const start = clock();
  let told = start;
  return {
    tell(records) {
      const now = clock();
      if (now - told < every) return;
      told = now;
      const rate = Math.round((records * 1000) / (now - start));
      const counted = `${records} ${what}, ${rate}/s`;
      const part = partOf(reading);
      if (isWatched) terminal.err(`${part === undefined ? '' : `${bar(part)} `}${counted}${CLEAR_LINE}\r`);
      else terminal.err(`${counted}${part === undefined ? '' : `, ${percent(part)}`}\n`);
    },
    end() {
      if (isWatched) terminal.err(CLEAR_LINE);
    },
  };
}

const partOf = (reading: Reading | undefined): number | undefined =>
  reading?.total ? Math.min(1, reading.read / reading.total) : undefined;

const percent = (part: number): string => `${Math.floor(part * 100)}%`;

function bar(part: number): string {
  const full = Math.round(part * BAR);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}] ${percent(part).padStart(4)}`;
}
