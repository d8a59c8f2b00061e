import { chmodSync, lstatSync, readdirSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The permission bits of other users, and of the group. */
const OTHERS = 0o007;
const GROUP = 0o070;
const OTHERS_WRITE = 0o002;
const OTHERS_ENTER = 0o001;
const GROUP_WRITE = 0o020;
const SETGID = 0o2000;
const ROOT_USER = 0;

/** What `judgeEntry` knows about a file, or about the directory `registry`. */
export interface Entry {
  readonly mode: number;
  readonly owner: number;
  /** The owner of the symbolic link by which the file is found. */
  readonly linkOwner?: number | undefined;
}

/** What `judgeEntry` knows about the data directory. */
export interface Surroundings {
  readonly mode: number;
  readonly owner: number;
  /** The user that this process runs as. */
  readonly user: number;
}

export type Verdict =
  | { readonly is: 'private' }
  /** The mode must be changed. If that is not permitted, the file can be used only if it is not `exposed`. */
  | { readonly is: 'open'; readonly mode: number; readonly exposed: boolean }
  | { readonly is: 'refused'; readonly reason: 'link' | 'owner' | 'writable' };

/**
 * Decides whether a file with secrets is private. Users that are trusted: the one of this process, root, and the owner
 * of the data directory. The group is trusted if the data directory is shared with it (group-writable with setgid), as
 * Kubernetes does for a pod with an fsGroup.
 */
export function judgeEntry({ mode, owner, linkOwner }: Entry, directory: Surroundings): Verdict {
  const isShared = (directory.mode & SETGID) !== 0 && (directory.mode & GROUP_WRITE) !== 0;
  const isTrusted = (user: number): boolean => [directory.user, ROOT_USER, directory.owner].includes(user);
  if (linkOwner !== undefined && !isTrusted(linkOwner)) return { is: 'refused', reason: 'link' };
  if (!isTrusted(owner) && !isShared) return { is: 'refused', reason: 'owner' };
  const excess = mode & (isShared ? OTHERS : OTHERS | GROUP);
  if (excess === 0) return { is: 'private' };
  // The directory does not protect a file that is somewhere else.
  const isReachable = (directory.mode & OTHERS_ENTER) !== 0 || linkOwner !== undefined;
  if (isReachable && (mode & OTHERS_WRITE) !== 0) return { is: 'refused', reason: 'writable' };
  return { is: 'open', mode: mode & 0o7777 & ~excess, exposed: isReachable && (mode & OTHERS) !== 0 };
}

/** Files in the data directory that only the server may read, and the directory with the blobs. */
const privateNames = [
  ...['owner.json', 'master.key', 'server.json'],
  ...['wharfinger.db', 'wharfinger.db-wal', 'wharfinger.db-shm'],
  'registry',
];

/**
 * Makes the files in a data directory private, and returns a sentence about each change. Throws if other users can
 * have replaced a file, or can read one whose mode cannot be changed. Does nothing if the directory does not exist, and
 * on Windows.
 */
export function protectDataDirectory(dataDir: string): string[] {
  const user = process.geteuid?.();
  const directory = statSync(dataDir, { throwIfNoEntry: false });
  if (user === undefined || directory === undefined) return [];
  const changes: string[] = [];
  let { mode } = directory;
  if ((mode & OTHERS_WRITE) !== 0) {
    if (!isEmpty(dataDir) || !tryChmod(dataDir, 0o700)) throw new Error(worldWritable(dataDir, mode));
    changes.push(`${dataDir} could be written by other users (mode ${octal(mode)}) and was empty: changed to 0700`);
    mode = 0o700;
  }
  for (const name of privateNames) {
    const change = protectEntry(join(dataDir, name), { mode, owner: directory.uid, user });
    if (change !== undefined) changes.push(change);
  }
  return changes;
}

/** Makes a file of the user private. Returns a sentence about the change, and throws as `protectDataDirectory` does. */
export function protectUserFile(path: string): string | undefined {
  const user = process.geteuid?.();
  const directory = statSync(dirname(path), { throwIfNoEntry: false });
  if (user === undefined || directory === undefined) return undefined;
  return protectEntry(path, { mode: directory.mode, owner: directory.uid, user });
}

/** Whether users other than the owner and the group can read a file. */
export const isReadableByOthers = (path: string): boolean =>
  process.geteuid !== undefined && (statSync(path).mode & 0o004) !== 0;

function protectEntry(path: string, directory: Surroundings): string | undefined {
  const entry = lstatSync(path, { throwIfNoEntry: false });
  if (entry === undefined) return undefined;
  const target = entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry;
  if (target === undefined) throw new Error(`${path} is a link to a file that does not exist: correct or delete it`);
  requireFileOrDirectory(path, target);
  const linkOwner = entry.isSymbolicLink() ? entry.uid : undefined;
  const verdict = judgeEntry({ mode: target.mode, owner: target.uid, linkOwner }, directory);
  switch (verdict.is) {
    case 'private':
      return undefined;
    case 'refused':
      throw new Error(refusals[verdict.reason](path, target, linkOwner));
    case 'open': {
      const wide = `${path} could be read by other users (mode ${octal(target.mode)})`;
      if (tryChmod(path, verdict.mode)) {
        const advice = verdict.exposed ? '. If this machine has other users, they may have copied it' : '';
        return `${wide}: changed to ${octal(verdict.mode)}${advice}`;
      }
      if (!verdict.exposed) return undefined;
      throw new Error(
        `${path} can be read by other users (mode ${octal(target.mode)}), and its mode cannot be changed: ` +
          `run chmod ${octal(verdict.mode)} ${path} as its owner, or set defaultMode: 0400 for a Kubernetes secret`,
      );
    }
  }
}

const refusals = {
  link: (path: string, _target: Stats, linkOwner = 0) =>
    `${path} is a link that belongs to another user (uid ${linkOwner}): delete it, or replace it by the file`,
  owner: (path: string, { uid }: Stats) =>
    `${path} belongs to another user (uid ${uid}), who knows its content: ` +
    'if that user may know it, change the owner with chown; otherwise restore the file from a backup',
  writable: (path: string, { mode }: Stats) =>
    `${path} can be written by other users (mode ${octal(mode)}), who may have replaced it: ` +
    `check its content, then run chmod 0600 ${path}`,
};

const worldWritable = (dataDir: string, mode: number): string =>
  `the data directory ${dataDir} can be written by other users (mode ${octal(mode)}), who may have replaced files: ` +
  `check its files, then run chmod 0700 ${dataDir}; or set WHARF_DATA to a new directory in it, such as ` +
  `${join(dataDir, 'wharf')}, which the server creates with mode 0700`;

/** Reading anything else, such as a pipe, could block forever. */
function requireFileOrDirectory(path: string, target: Stats): void {
  if (!target.isFile() && !target.isDirectory()) throw new Error(`${path} is not a file: delete it`);
}

/** A new file system of its own has the directory lost+found. */
const isEmpty = (directory: string): boolean => readdirSync(directory).every((name) => name === 'lost+found');

function tryChmod(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode);
    return true;
  } catch (error) {
    if (!['EPERM', 'EROFS', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    return false;
  }
}

const octal = (mode: number): string => `0${(mode & 0o7777).toString(8)}`;
