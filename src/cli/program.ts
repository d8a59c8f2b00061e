import { Command, CommanderError } from 'commander';
import { version } from '../base/version.ts';
import { addAuth } from './auth.ts';
import { messageOf, oneLine } from './failure.ts';
import { example } from './help.ts';
import { addPing } from './ping.ts';
import { addServe } from './serve.ts';

const ExitCode = { ok: 0, failure: 1, usage: 2 } as const;

/** The whole command tree: one line per area. */
export function createProgram(): Command {
  const program = new Command('wharf')
    .description('Wharfinger: a self-hosted server for the Resource Management API v2, and its client.')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(errorLine(text.replace(/^error: /, ''))) });
  addServe(program);
  addAuth(program);
  addPing(program);
  return example(program, 'wharf serve', 'wharf <command> --help', '(from a clone: npm run -s wharf -- <command>)');
}

/** Runs one command line and answers its exit code: 0 for success, 1 for failure, 2 for wrong usage. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
    return ExitCode.ok;
  } catch (error) {
    // Commander has said what was wrong by now; asking for help or the version is no error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    process.stderr.write(errorLine(messageOf(error)));
    return ExitCode.failure;
  }
}

const errorLine = (text: string): string => `wharf: ${oneLine(text)}\n`;
