import type { Command } from 'commander';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { terminalOf } from '../output/terminal.ts';
import { openServerStore } from './open-server-store.ts';
import { addStorageOptions } from './registry-command.ts';
import { readServerSettings } from './setting-options.ts';

/** Adds the command that lets a server start without the blobs that its database has. */
export function addInit(registry: Command): void {
  const command = addStorageOptions(
    registry
      .command('init')
      .description('let the server start although the blobs of its database are lost; pushes then store them again')
      .option('--yes', 'confirm that the blobs are lost: no volume is missing and there is no backup'),
  );
  addExamples(command, 'wharf registry init --yes --data /srv/wharf');
  command.action(async ({ yes = false }: { readonly yes?: boolean }) => {
    const { config } = await readServerSettings(command);
    const terminal = terminalOf(command);
    const store = await openServerStore(config, terminal);
    try {
      const { readDatabaseId } = await import('../../identity/data-directory.ts');
      const { claimRegistryDirectory, findRegistryProblem, registryDirectory, requireOwnRegistry } = await import(
        '../../oci/registry-directory.ts'
      );
      const directory = registryDirectory(config.data);
      const databaseId = await readDatabaseId(store.reader);
      if (databaseId === undefined) throw new Error('the database is empty: start the server once');
      await requireOwnRegistry(directory, databaseId);
      const problem = await findRegistryProblem(store.reader, directory);
      if (problem === undefined) {
        terminal.out(`${directory} belongs to this database: nothing to do\n`);
        return;
      }
      if (!yes) {
        throw new CliError(ExitCode.precondition, `${problem}; if they are lost, run this command with --yes`);
      }
      await claimRegistryDirectory(directory, databaseId);
      terminal.out(`the server can start; 'wharf registry verify' lists the images to push again\n`);
    } finally {
      await store.close();
    }
  });
}
