import type { Command } from 'commander';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { formatBytes } from '../output/bytes.ts';
import { counted } from '../output/counted.ts';
import { terminalOf } from '../output/terminal.ts';
import { addTarget, type BackupOptions, printResult, selectBackups, withTarget } from './options.ts';
import { startProgress } from './progress.ts';

export function addVerify(backup: Command): void {
  const command = addTarget(backup.command('verify'))
    .description('read every file of all backups and compare it with its checksum; exit code 1 if one is damaged')
    .option('--backup <id>', 'only this backup');
  addExamples(
    command,
    'wharf backup verify /mnt/backups',
    'wharf backup verify /mnt/backups --backup 20260101T000000Z-1a2b3c',
  );
  command.action(async (location: string, { backup: id }: BackupOptions) => {
    const { verifyBackups } = await import('../../backup/verify.ts');
    const progress = startProgress(terminalOf(command));
    const result = await withTarget(location, async (target) =>
      verifyBackups(target, await selectBackups(target, id), progress),
    );
    progress.end();
    const { backups, blobs, bytes, problems } = result;
    const read = problems.length === 0 ? 'verified' : 'read';
    const counts = `${counted(backups, 'backup')} with ${counted(blobs, 'blob')}`;
    printResult(command, result, () => `${read} ${counts}: ${formatBytes(bytes)}\n`);
    if (problems.length === 0) return;
    throw new CliError(
      ExitCode.failure,
      `${counted(problems.length, 'file')} missing or damaged. For blobs run 'wharf backup create --full', ` +
        'which copies all of them again; a backup with a damaged part cannot be restored',
      problems,
    );
  });
}
