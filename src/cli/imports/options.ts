import { type Command, Option } from 'commander';
import { addClientOptions } from '../context.ts';

/** What every import from files takes. */
export interface ImportOptions {
  readonly parent: string;
  readonly refusals?: string;
}

const FILES = "files and directories, also packed as gzip or zip; '-' for standard input";

/** Gives a command the arguments and options of an import from files. */
export function addImportOptions(command: Command, paths = FILES): Command {
  command
    .argument('<path...>', paths)
    .addOption(new Option('--parent <uid>', 'the group that they belong to').makeOptionMandatory())
    .option('--refusals <file>', 'write all that was refused to this file, as JSON lines')
    .addHelpText(
      'after',
      '\nWhat is in already stays as it is, so that an import that broke off can be run again.\n' +
        'A damaged record is refused, named, and keeps no other out.',
    );
  return addClientOptions(command);
}
