import { type Command, Option } from 'commander';
import { addClientOptions } from '../client-options.ts';

/** The options of every import from files. */
export interface ImportOptions {
  readonly parent: string;
  readonly refusals?: string;
}

const DEFAULT_PATHS_HELP = "files and directories, also gzip and zip files; '-' for standard input";

/** Adds the arguments and options of an import from files. */
export function addImportOptions(command: Command, paths = DEFAULT_PATHS_HELP): Command {
  command
    .argument('<path...>', paths)
    .addOption(new Option('--parent <uid>', 'the group to import into').makeOptionMandatory())
    .option('--refusals <file>', 'write all refused records to this file, as JSON lines')
    .addHelpText(
      'after',
      '\nAn import that was interrupted can be run again: records that exist already are not changed.\n' +
        'An invalid record is refused and reported. The other records are imported.',
    );
  return addClientOptions(command);
}
