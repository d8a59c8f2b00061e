import type { Progress } from '../../backup/progress.ts';
import { formatBytes } from '../output/bytes.ts';
import type { Terminal } from '../output/terminal.ts';

const TERMINAL_INTERVAL_MS = 100;
const LOG_INTERVAL_MS = 5_000;
const CLEAR_LINE = '\x1b[K';

/** Prints progress to standard error: a line that changes on a terminal, else a line every few seconds. */
export function startProgress(
  terminal: Terminal,
  clock: () => number = () => performance.now(),
): Progress & { end(): void } {
  const { isInteractive, err } = terminal;
  const intervalMs = isInteractive ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS;
  let printedAt = clock();
  return {
    update(what, done, total) {
      const now = clock();
      if (now - printedAt < intervalMs) return;
      printedAt = now;
      const format = what.startsWith('bytes') ? formatBytes : String;
      const percent = total > 0 ? ` (${Math.floor((done * 100) / total)}%)` : '';
      const line = `${format(done)} of ${format(total)} ${what.replace(/^bytes of /, 'of ')}${percent}`;
      err(isInteractive ? `${line}${CLEAR_LINE}\r` : `${line}\n`);
    },
    say: (message) => err(isInteractive ? `${message}${CLEAR_LINE}\r` : `${message}\n`),
    end() {
      if (isInteractive) err(CLEAR_LINE);
    },
  };
}
