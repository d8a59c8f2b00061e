import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { manifestKey, partKey } from './manifest.ts';
import { type BackupTarget, writeText } from './target.ts';

/*
 * Creating a backup skips blobs that the target has already, so pruning must not delete blobs meanwhile. Each run first
 * writes a file that says what it does, and then reads those of the others. So of two that begin at the same time, at
 * least one sees the other. The file expires unless it is renewed, so that a run that was killed does not block others.
 */

export type RunKind = 'create' | 'prune';

interface RunFile {
  readonly kind: RunKind;
  readonly host: string;
  readonly pid: number;
  /** Identifies where the pid is valid. */
  readonly processes: string;
  /** Milliseconds since the epoch. */
  readonly begun: number;
  readonly expires: number;
}

/** A run of this process or another one. */
export interface Run extends Pick<RunFile, 'kind' | 'host' | 'pid' | 'begun' | 'expires'> {
  readonly id: string;
}

const TTL_MS = 3 * 60_000;
const RENEW_MS = 20_000;
const POLL_MS = 500;

const runKey = (id: string): string => `in-progress/${id}.json`;

/** Sorts by time. The random part distinguishes runs of different hosts. */
export function newRunId(now: number): string {
  const time = new Date(now).toISOString().replace(/[-:.]/g, '');
  return `${time}-${randomBytes(3).toString('hex')}`;
}

export interface OwnRun {
  readonly id: string;
  /** Throws if others may have taken this run for dead, because the target could not be written for too long. */
  requireLive(): Promise<void>;
  /** Returns the other runs that are active. Removes what those that were interrupted have left. */
  others(): Promise<Run[]>;
  end(): Promise<void>;
}

/** Announces a run to others. The target must be prepared. */
export async function beginRun(target: BackupTarget, id: string, kind: RunKind, clock = Date.now): Promise<OwnRun> {
  const begun = clock();
  let renewed = begun;
  let isLapsed = false;
  const announce = async (): Promise<void> => {
    const now = clock();
    const file: RunFile = {
      ...{ kind, begun, expires: now + TTL_MS },
      ...{ host: hostname(), pid: process.pid, processes: processSpace() },
    };
    await writeText(target, runKey(id), `${JSON.stringify(file)}\n`);
    renewed = now;
  };
  await announce();
  const hasLapsed = async (): Promise<boolean> =>
    clock() - renewed >= TTL_MS || (await target.readText(runKey(id))) === undefined;
  async function renew(): Promise<void> {
    isLapsed ||= await hasLapsed();
    await announce();
  }
  // A renewal that fails is repeated at the next turn.
  const timer = setInterval(() => void renew().catch(() => {}), RENEW_MS);
  return {
    id,
    async requireLive() {
      if (!isLapsed && !(await hasLapsed())) return;
      throw new Error(
        `${target.name} could not be written for ${TTL_MS / 60_000} minutes, or another host's clock is ahead, ` +
          'so others may have deleted what this run needs: run the command again',
      );
    },
    others: async () => (await liveRuns(target, clock())).filter((run) => run.id !== id),
    async end() {
      clearInterval(timer);
      await target.remove(runKey(id));
    },
  };
}

/** Waits until no other run of this kind is active. */
export async function awaitOthers(run: OwnRun, kind: RunKind, onWait: (other: Run) => void): Promise<void> {
  let isReported = false;
  for (;;) {
    const other = (await run.others()).find((candidate) => candidate.kind === kind);
    if (!other) return;
    if (!isReported) onWait(other);
    isReported = true;
    await sleep(POLL_MS);
  }
}

async function liveRuns(target: BackupTarget, now: number): Promise<Run[]> {
  const live: Run[] = [];
  for await (const { key } of target.list('in-progress/')) {
    const id = /^in-progress\/([^/]+)\.json$/.exec(key)?.[1];
    const text = id === undefined ? undefined : await target.readText(key);
    if (id === undefined || text === undefined) continue;
    const { processes, ...file } = JSON.parse(text) as RunFile;
    const isDead = file.expires <= now || (processes === processSpace() && !isRunning(file.pid));
    if (isDead) await target.remove(key);
    else live.push({ id, ...file });
  }
  return live;
}

/** Removes the files of backups without a manifest, and temporary files, unless a run is writing them. */
export async function removeInterrupted(target: BackupTarget, run: OwnRun): Promise<string[]> {
  // In this order: a run that creates a backup has announced itself before it writes files.
  const partsById = new Map<string, string[]>();
  for await (const { key } of target.list('backups/')) {
    const id = key.split('/')[1] ?? '';
    partsById.set(id, [...(partsById.get(id) ?? []), key]);
  }
  const live = new Set([run.id, ...(await run.others()).map(({ id }) => id)]);
  await target.removeLeftovers(live);
  const removed: string[] = [];
  for (const [id, keys] of partsById) {
    if (live.has(id) || keys.includes(manifestKey(id))) continue;
    // It may have been finished since it was listed.
    if ((await target.readText(manifestKey(id))) !== undefined) continue;
    for (const key of keys) await target.remove(key);
    removed.push(id);
  }
  return removed;
}

/** Removes a backup. Without its manifest it is no backup, so that is removed first. */
export async function removeBackup(target: BackupTarget, id: string): Promise<void> {
  await target.remove(manifestKey(id));
  const keys: string[] = [];
  for await (const { key } of target.list(partKey(id, ''))) keys.push(key);
  for (const key of keys) await target.remove(key);
}

let ownProcessSpace: string | undefined;

/** The same text for processes that see each other's pids: those of one boot and one container. */
function processSpace(): string {
  ownProcessSpace ??= createHash('sha256')
    .update(`${hostname()} ${bootId()} ${pidNamespace()}`)
    .digest('hex')
    .slice(0, 16);
  return ownProcessSpace;
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
