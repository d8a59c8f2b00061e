import { getSetting } from '../store/settings.ts';
import type { Reader } from '../store/store.ts';

/** The setting that describes the last backup, whether a schedule or a command created it. */
export const LAST_BACKUP = 'backup.last';

export interface LastBackup {
  readonly id: string;
  /** Times are milliseconds since the epoch. */
  readonly moment: number;
  readonly finished: number;
  readonly durationMs: number;
  /** The size of all that a restore reads. */
  readonly bytes: number;
  /** The size of what was written. */
  readonly copiedBytes: number;
}

export async function readLastBackup(db: Reader): Promise<LastBackup | undefined> {
  const text = await getSetting(db, LAST_BACKUP);
  return text ? JSON.parse(text) : undefined;
}
