import { runProgram } from './run-program.ts';

/** Runs `wharf serve`. A server starts without loading the other commands. */
export const runWharf = (args: readonly string[]): Promise<void> => runProgram(args);
