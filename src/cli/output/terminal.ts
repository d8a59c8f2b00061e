import type { Command } from 'commander';

/** Standard output and standard error, as configured in commander. Tests replace them. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** The columns of the terminal, undefined when standard output is not a terminal. */
  readonly width: number | undefined;
  /** Whether standard error is a terminal. */
  readonly isInteractive: boolean;
}

export function terminalOf(command: Command): Terminal {
  const { writeOut, writeErr, getOutHelpWidth, getErrHelpWidth } = command.configureOutput();
  return {
    out: (text) => writeOut?.(text),
    err: (text) => writeErr?.(text),
    width: getOutHelpWidth?.(),
    // Commander declares a number, but returns undefined without a terminal.
    isInteractive: getErrHelpWidth?.() !== undefined,
  };
}
