import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { version } from '../base/version.ts';
import { CliError, ExitCode, exitCodeMeanings } from './exit-codes.ts';
import { messageOf, oneLine } from './failure.ts';
import { example } from './help.ts';
import { terminalOf } from './output/terminal.ts';
import { visible } from './output/text.ts';
import { addServe } from './server/serve.ts';

/** The command tree, as far as a command line needs it: one line per area. */
export async function createProgram(args: readonly string[], output: OutputConfiguration = {}): Promise<Command> {
  const program = new Command('wharf')
    .description('Wharfinger: a self-hosted server for the Resource Management API v2, and its client.')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(errorLine(text.replace(/^error: /, ''))), ...output });
  addServe(program);
  // A server starts without their weight.
  if (args[0] !== 'serve') await (await import('./client-commands.ts')).addClientCommands(program, args);
  program.addHelpText('after', exitCodesHelp);
  return example(program, 'wharf serve', 'wharf <command> --help', '(from a clone: npm run -s wharf -- <command>)');
}

const exitCodesHelp = `\nExit codes:\n${Object.entries(exitCodeMeanings)
  .map(([code, meaning]) => `  ${code}  ${meaning}`)
  .join('\n')}`;

/** Runs one command line and answers its exit code. */
export async function run(args: readonly string[], output?: OutputConfiguration): Promise<number> {
  const program = await createProgram(args, output);
  try {
    await program.parseAsync(args, { from: 'user' });
    return ExitCode.ok;
  } catch (error) {
    // Commander has said what was wrong by now; asking for help or the version is no error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    const { exitCode, details } = error instanceof CliError ? error : { exitCode: ExitCode.failure, details: [] };
    const lines = details.map((line) => `  ${visible(oneLine(line))}\n`);
    terminalOf(program).err(errorLine(messageOf(error)) + lines.join(''));
    return exitCode;
  }
}

const errorLine = (text: string): string => `wharf: ${visible(oneLine(text))}\n`;
