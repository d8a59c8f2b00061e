import { addClientCommands } from './client-commands.ts';
import { runProgram } from './run-program.ts';

/** Runs any command of `wharf`. */
export const runWharf = (args: readonly string[]): Promise<void> => runProgram(args, addClientCommands);
