import type { Command } from 'commander';
import { addExamples } from '../help.ts';
import { addCreate } from './create.ts';
import { addList } from './list.ts';
import { addPrune } from './prune.ts';
import { addRestore } from './restore.ts';
import { addVerify } from './verify.ts';

/** Adds the commands for backups. They open the database and the blobs directly, also while the server runs. */
export function addBackup(program: Command): void {
  const backup = program
    .command('backup')
    .description('back up a server while it runs, to a directory or S3; verify and restore backups');
  addExamples(
    backup,
    'wharf backup create /mnt/backups',
    "wharf backup create 's3://bucket/wharf?region=eu-central-1'",
  );
  addCreate(backup);
  addList(backup);
  addVerify(backup);
  addRestore(backup);
  addPrune(backup);
}
