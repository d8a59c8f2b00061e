import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { version } from '../base/version.ts';
import { errorMessage, oneLine } from './error-message.ts';
import { CliError, ExitCode, exitCodeMeanings } from './exit-codes.ts';
import { addExamples } from './help.ts';
import { terminalOf } from './output/terminal.ts';
import { escapeForTerminal } from './output/text.ts';
import { addServe } from './server/serve.ts';

/** Adds commands to the program. The arguments tell which of them are needed. */
export type AddCommands = (program: Command, args: readonly string[]) => Promise<void>;

/** Creates the program with its command `serve`, and the commands that are added. */
export async function createProgram(
  args: readonly string[],
  addCommands?: AddCommands,
  output: OutputConfiguration = {},
): Promise<Command> {
  const program = new Command('wharf')
    .description('Wharfinger: a self-hosted server for the Resource Management API v2, and its client.')
    .version(version)
    // Otherwise `--version 3.12` of a subcommand would print the version of this program.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(errorLine(text.replace(/^error: /, ''))), ...output });
  addServe(program);
  await addCommands?.(program, args);
  program.addHelpText('after', exitCodesHelp);
  return addExamples(program, 'wharf serve', 'wharf <command> --help', '(from a clone: npm run -s wharf -- <command>)');
}

const exitCodesHelp = `\nExit codes:\n${Object.entries(exitCodeMeanings)
  .map(([code, meaning]) => `  ${code}  ${meaning}`)
  .join('\n')}`;

/** Runs a command line and returns its exit code. */
export async function run(
  args: readonly string[],
  addCommands?: AddCommands,
  output?: OutputConfiguration,
): Promise<number> {
  const program = await createProgram(args, addCommands, output);
  try {
    await program.parseAsync(args, { from: 'user' });
    return ExitCode.ok;
  } catch (error) {
    // Commander has printed the error already. --help and --version throw too, with exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    const { exitCode, details } = error instanceof CliError ? error : { exitCode: ExitCode.failure, details: [] };
    const lines = details.map((line) => `  ${escapeForTerminal(oneLine(line))}\n`);
    terminalOf(program).err(errorLine(errorMessage(error)) + lines.join(''));
    return exitCode;
  }
}

const errorLine = (text: string): string => `wharf: ${escapeForTerminal(oneLine(text))}\n`;
