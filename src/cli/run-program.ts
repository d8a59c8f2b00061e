import { errorMessage } from './error-message.ts';
import { ExitCode } from './exit-codes.ts';
import { createStandardOutput } from './output/standard-output.ts';
import { type AddCommands, run } from './program.ts';

/** Runs a command line with the standard output of this process, and sets the exit code. */
export async function runProgram(args: readonly string[], addCommands?: AddCommands): Promise<void> {
  let isOutputLost = false;
  const writeOut = createStandardOutput((error) => {
    isOutputLost = true;
    process.exitCode ||= ExitCode.failure;
    process.stderr.write(`wharf: cannot write the output: ${errorMessage(error)}\n`);
  });
  const code = await run(args, addCommands, { writeOut });
  process.exitCode = code === ExitCode.ok && isOutputLost ? ExitCode.failure : code;
}
