import { type Command, Option } from 'commander';
import type { Pruned, Retention } from '../../backup/prune.ts';
import { systemClock } from '../../base/clock.ts';
import { parseRetention } from '../../config-values.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { formatBytes } from '../output/bytes.ts';
import { counted } from '../output/counted.ts';
import { terminalOf } from '../output/terminal.ts';
import { addTarget, type BackupOptions, printResult, withTarget } from './options.ts';
import { startProgress } from './progress.ts';

interface Options extends BackupOptions {
  readonly keep: Retention;
  readonly dryRun?: boolean;
}

export function addPrune(backup: Command): void {
  const command = addTarget(backup.command('prune'))
    .description('remove old backups and the blobs that only they need; the newest backup always stays')
    .addOption(
      new Option('--keep <retention>', 'what to keep: a number of backups, or an age such as 30d')
        .argParser(optionParser(parseRetention))
        .makeOptionMandatory(),
    )
    .option('--dry-run', 'only print what would be removed');
  addExamples(
    command,
    'wharf backup prune /mnt/backups --keep 7',
    'wharf backup prune /mnt/backups --keep 30d --dry-run',
  );
  command.action(async (location: string, { keep, dryRun = false }: Options) => {
    const { pruneBackups } = await import('../../backup/prune.ts');
    const progress = startProgress(terminalOf(command));
    const pruned = await withTarget(location, (target, id) =>
      pruneBackups({ target, id, keep, dryRun, clock: systemClock, progress }),
    );
    progress.end();
    printResult(command, { dryRun, ...pruned }, () => pruneText(pruned, dryRun));
  });
}

export function pruneText({ removed, kept, blobs, bytes, blockedBy }: Pruned, dryRun: boolean): string {
  const verb = dryRun ? 'would remove' : 'removed';
  const counts = `${counted(removed.length, 'backup')} and ${counted(blobs, 'blob')} with ${formatBytes(bytes)}; kept: ${kept}`;
  const blocked = blockedBy
    ? `blobs were not removed, because ${blockedBy.host} is creating the backup ${blockedBy.id}: prune again later\n`
    : '';
  return `${verb} ${counts}\n${blocked}`;
}
