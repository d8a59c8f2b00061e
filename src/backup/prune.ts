import { matchBlobs, mergeBlobLists } from './blob-list.ts';
import { type FoundBackup, findBackups, requireTarget } from './manifest.ts';
import type { Progress } from './progress.ts';
import { beginRun, type Run, removeBackup, removeInterrupted } from './runs.ts';
import type { BackupTarget } from './target.ts';
import { readSpooledList, spoolList, withSpool } from './verify.ts';

/** Which backups to keep: the newest ones, or those that are younger than a duration. */
export type Retention = { readonly count: number } | { readonly ageMs: number };

export interface PruneOptions {
  readonly target: BackupTarget;
  /** From `newRunId`. */
  readonly id: string;
  readonly keep: Retention;
  readonly dryRun: boolean;
  readonly clock: () => number;
  readonly progress: Progress;
}

export interface Pruned {
  readonly removed: readonly string[];
  readonly kept: number;
  readonly blobs: number;
  readonly bytes: number;
  /** Set if blobs were not deleted, because this run creates a backup. */
  readonly blockedBy: Run | undefined;
}

/**
 * Deletes backups, and the blobs that only they referred to. The newest backup is always kept. Deletes no blob while a
 * backup is being created, because that may refer to it.
 */
export async function pruneBackups(options: PruneOptions): Promise<Pruned> {
  const { target, id, keep, dryRun, clock, progress } = options;
  await requireTarget(target);
  const run = await beginRun(target, id, 'prune', clock);
  try {
    const blockedBy = (await run.others()).find(({ kind }) => kind === 'create');
    if (!dryRun) await removeInterrupted(target, run);
    const backups = await findBackups(target);
    const { kept, removed } = choose(backups, keep, clock());
    for (const backup of dryRun ? [] : removed) {
      await removeBackup(target, backup.id);
      progress.say(`removed the backup ${backup.id}`);
    }
    const result = { removed: removed.map((backup) => backup.id), kept: kept.length, blockedBy };
    if (blockedBy) return { ...result, blobs: 0, bytes: 0 };
    const unused = await removeUnusedBlobs(target, kept, dryRun ? undefined : () => run.requireLive());
    return { ...result, ...unused };
  } finally {
    await run.end();
  }
}

/**
 * Backups that lack blobs, because the server had lost them, do not displace complete ones: the retention applies to all
 * backups, and to the complete ones among them. Backups with a damaged manifest are kept: it is unknown what they refer
 * to.
 */
export function choose(
  backups: readonly FoundBackup[],
  keep: Retention,
  now: number,
): { readonly kept: readonly FoundBackup[]; readonly removed: readonly FoundBackup[] } {
  const readable = backups.filter(({ manifest }) => manifest !== undefined);
  const complete = readable.filter(({ manifest }) => manifest?.blobs.unavailable.length === 0);
  const kept = new Set([...newestOf(readable, keep, now), ...newestOf(complete, keep, now)]);
  const isKept = (backup: FoundBackup): boolean => !backup.manifest || kept.has(backup);
  return { kept: backups.filter(isKept), removed: backups.filter((backup) => !isKept(backup)) };
}

/** The backups that a retention keeps, and always the newest. `backups` begins with the oldest. */
function newestOf(backups: readonly FoundBackup[], keep: Retention, now: number): readonly FoundBackup[] {
  return backups.filter(({ manifest }, index) => {
    const rank = backups.length - 1 - index;
    if (!manifest || rank === 0) return true;
    return 'count' in keep ? rank < keep.count : Date.parse(manifest.moment) > now - keep.ageMs;
  });
}

/** How many blobs are deleted until the run checks again that others know of it. */
const CHECK_EVERY = 200;

async function removeUnusedBlobs(
  target: BackupTarget,
  kept: readonly FoundBackup[],
  requireLive: (() => Promise<void>) | undefined,
): Promise<{ blobs: number; bytes: number }> {
  const unused = { blobs: 0, bytes: 0 };
  const damaged = kept.find(({ manifest }) => !manifest);
  if (damaged) {
    const advice = `run 'wharf backup verify', and delete backups/${damaged.id} if it cannot be repaired`;
    throw new Error(`the backup ${damaged.id} cannot be read (${damaged.problem}), so no blob is deleted: ${advice}`);
  }
  await withSpool(async (directory) => {
    const lists: string[] = [];
    for (const { manifest } of kept) if (manifest) lists.push(await spoolList(target, manifest, directory));
    const removals: string[] = [];
    const listed = mergeBlobLists(lists.map(readSpooledList));
    const matched = matchBlobs(listed, target.list('blobs/'), (key, size) => {
      removals.push(key);
      unused.blobs++;
      unused.bytes += size;
    });
    for await (const _ of matched);
    for (const [at, key] of requireLive ? removals.entries() : []) {
      if (at % CHECK_EVERY === 0) await requireLive?.();
      await target.remove(key);
    }
  });
  return unused;
}
