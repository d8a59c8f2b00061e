import type { Terminal } from '../output/terminal.ts';

/** How much of the sources has been read. The total is unknown for standard input. */
export interface ReadProgress {
  readonly read: number;
  readonly total: number | undefined;
}

export interface Progress {
  /** Reports the number of records that are done. */
  update(records: number): void;
  end(): void;
}

const TERMINAL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 5_000;
const CLEAR_LINE = '\x1b[K';
const BAR_WIDTH = 24;

/** Prints progress: a bar on a terminal, else a line every few seconds. Prints nothing if `isQuiet`. */
export function startProgress(
  { terminal, isQuiet, what }: { terminal: Terminal; isQuiet: boolean; what: string },
  readProgress: ReadProgress | undefined,
  clock: () => number = () => performance.now(),
): Progress {
  if (isQuiet) return { update() {}, end() {} };
  const { isInteractive } = terminal;
  const intervalMs = isInteractive ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS;
  const start = clock();
  let printedAt = start;
  return {
    update(records) {
      const now = clock();
      if (now - printedAt < intervalMs) return;
      printedAt = now;
      const rate = Math.round((records * 1000) / (now - start));
      const counted = `${records} ${what}, ${rate}/s`;
      const fraction = fractionOf(readProgress);
      if (isInteractive) terminal.err(`${fraction === undefined ? '' : `${bar(fraction)} `}${counted}${CLEAR_LINE}\r`);
      else terminal.err(`${counted}${fraction === undefined ? '' : `, ${percent(fraction)}`}\n`);
    },
    end() {
      if (isInteractive) terminal.err(CLEAR_LINE);
    },
  };
}

const fractionOf = (progress: ReadProgress | undefined): number | undefined =>
  progress?.total ? Math.min(1, progress.read / progress.total) : undefined;

const percent = (fraction: number): string => `${Math.floor(fraction * 100)}%`;

function bar(fraction: number): string {
  const full = Math.round(fraction * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] ${percent(fraction).padStart(4)}`;
}
