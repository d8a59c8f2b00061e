import type { Command } from 'commander';
import type { Manifest } from '../../backup/manifest.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { terminalOf } from '../output/terminal.ts';
import { addSettingOptions, readServerSettings } from '../server/setting-options.ts';
import { addTarget, type BackupOptions, printResult, selectBackups, withTarget } from './options.ts';
import { startProgress } from './progress.ts';

export function addRestore(backup: Command): void {
  const command = addTarget(backup.command('restore'))
    .description(
      'restore a backup into an empty data directory and, for PostgreSQL, an empty database; can be repeated',
    )
    .option('--backup <id>', 'which backup (default: the newest)');
  addSettingOptions(command, ['data', 'databaseUrl']);
  addExamples(
    command,
    'wharf backup restore /mnt/backups --data /srv/wharf-restored',
    "WHARF_DATABASE_URL=postgres://… wharf backup restore 's3://bucket/wharf' --data /srv/wharf-restored",
  );
  command.action((location: string, options: BackupOptions) => restore(command, location, options));
}

async function restore(command: Command, location: string, options: BackupOptions): Promise<void> {
  const { backup } = options;
  const { config } = await readServerSettings(command);
  // Loaded here so that the other commands start without loading the server.
  const { restoreBackup } = await import('../../backup/restore.ts');
  const { RestoreRefused } = await import('../../backup/restore-refused.ts');
  const { registryDirectory } = await import('../../oci/registry-directory.ts');
  const terminal = terminalOf(command);
  const progress = startProgress(terminal);
  const manifest = await withTarget(location, async (target) => {
    const found = (await selectBackups(target, backup)).at(-1);
    if (!found) throw new CliError(ExitCode.notFound, `${target.name} has no backups yet`);
    if (!found.manifest) throw new Error(`the backup ${found.id} cannot be restored: ${found.problem}`);
    await restoreBackup({
      ...{ target, manifest: found.manifest, progress, dataDir: config.data, databaseUrl: config.databaseUrl },
      registryDirectory: registryDirectory(config.data),
    }).catch((error: unknown) => {
      throw error instanceof RestoreRefused ? new CliError(ExitCode.precondition, error.message) : error;
    });
    return found.manifest;
  });
  progress.end();
  const { id, moment, masterKey } = manifest;
  printResult(command, { id, moment, data: config.data, masterKey }, () => summaryText(manifest, config.data));
}

function summaryText({ id, moment, masterKey }: Manifest, data: string): string {
  const restored = `restored the backup ${id} into ${data}: all changes before ${moment}\n`;
  if (masterKey.included) return `${restored}Start the server with: wharf serve --data ${data}\n`;
  const which = masterKey.id ? ` ${masterKey.id}` : '';
  return `${restored}The master key${which} is not in the backup: set WHARF_MASTER_KEY to it, or put its file at
${data}/master.key (mode 0600). Then start the server with: wharf serve --data ${data}
`;
}
