import type { BackupTarget } from './target.ts';

/** Refuses to begin what would fill the disk of the target. */
export async function requireFree(target: BackupTarget, bytes: number, what: string): Promise<void> {
  const free = await target.freeBytes();
  if (free === undefined || free >= bytes) return;
  const mebibytes = (count: number): string => `${Math.ceil(count / 2 ** 20)} MiB`;
  throw new Error(
    `${target.name} has ${mebibytes(free)} free, and ${what} needs ${mebibytes(bytes)}: ` +
      "free some space, or run 'wharf backup prune'",
  );
}
