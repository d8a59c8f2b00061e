import type { Command } from 'commander';
import type { FoundBackup } from '../../backup/manifest.ts';
import { addExamples } from '../help.ts';
import { formatBytes } from '../output/bytes.ts';
import { tableText } from '../output/table.ts';
import { terminalOf } from '../output/terminal.ts';
import { addTarget, printResult, selectBackups, withTarget } from './options.ts';

export function addList(backup: Command): void {
  const command = addTarget(backup.command('list')).description('list the backups of a target, the oldest first');
  addExamples(command, 'wharf backup list /mnt/backups', "wharf backup list 's3://bucket/wharf' -o json");
  command.action(async (location: string) => {
    const backups = await withTarget(location, (target) => selectBackups(target, undefined));
    const { width } = terminalOf(command);
    const header = ['ID', 'MOMENT', 'VERSION', 'DATABASE', 'SCHEMA', 'BLOBS', 'SIZE', 'MASTER KEY'];
    const values = backups.map(({ id, manifest, problem }) => (manifest ? { ...manifest } : { id, problem }));
    printResult(command, values, () => tableText(header, backups.map(rowOf), width));
  });
}

function rowOf({ id, manifest, problem }: FoundBackup): string[] {
  if (!manifest) return [id, `cannot be used: ${problem}`];
  const { moment, version, database, blobs, parts, masterKey } = manifest;
  const bytes = parts.reduce((sum, { size }) => sum + size, blobs.bytes);
  const counts = [String(database.schema), String(blobs.count), formatBytes(bytes)];
  return [id, moment, version, database.kind, ...counts, masterKey.included ? 'included' : 'separate'];
}
