import type { GaugeDeclaration } from '../base/metrics.ts';
import type { Store } from '../store/store.ts';
import { type LastBackup, readLastBackup } from './last-backup.ts';
import { readSchedule } from './schedule.ts';

/** Gauges of the last backup, whether a schedule or a command created it. */
export function createBackupGauges(
  store: Pick<Store, 'reader'>,
  { isScheduled }: { readonly isScheduled: boolean },
): GaugeDeclaration[] {
  const ofLast = (name: string, help: string, value: (last: LastBackup) => number): GaugeDeclaration => ({
    name,
    help,
    isShared: true,
    read: async () => {
      const last = await readLastBackup(store.reader);
      return last && value(last);
    },
  });
  return [
    {
      name: 'wharf_backup_last_success_timestamp_seconds',
      help: 'When the last backup was finished; 0 if backups are scheduled and none was created yet.',
      isShared: true,
      read: async () => {
        const last = await readLastBackup(store.reader);
        return last ? last.finished / 1000 : isScheduled ? 0 : undefined;
      },
    },
    ofLast('wharf_backup_last_duration_seconds', 'How long the last backup took.', (last) => last.durationMs / 1000),
    ofLast('wharf_backup_last_size_bytes', 'Bytes that a restore of the last backup reads.', ({ bytes }) => bytes),
    ofLast('wharf_backup_last_copied_bytes', 'Bytes that the last backup wrote.', ({ copiedBytes }) => copiedBytes),
    {
      name: 'wharf_backup_failures',
      help: 'Scheduled backups that failed since the last one that succeeded.',
      isShared: true,
      read: async () => (isScheduled ? ((await readSchedule(store))?.failures ?? 0) : undefined),
    },
  ];
}
