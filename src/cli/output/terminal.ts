import type { Command } from 'commander';

/** Where a command writes. Commander keeps it and hands it down to every command, which also lets a test listen. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** The columns of the terminal that shows standard output; undefined when a program reads it. */
  readonly width: number | undefined;
  /** Whether somebody watches standard error. */
  readonly isWatched: boolean;
}

export function terminalOf(command: Command): Terminal {
  const { writeOut, writeErr, getOutHelpWidth, getErrHelpWidth } = command.configureOutput();
  return {
    out: (text) => writeOut?.(text),
    err: (text) => writeErr?.(text),
    width: getOutHelpWidth?.(),
    // Without a terminal there is no width, whatever the types say.
    isWatched: getErrHelpWidth?.() !== undefined,
  };
}
