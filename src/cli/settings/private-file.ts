import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../base/clock.ts';

/**
 * The path of a file in the configuration directory of the user (XDG Base Directory; a relative path counts as
 * unset).
 */
export function userFile(name: string): string {
  const base = process.env.XDG_CONFIG_HOME ?? '';
  return join(isAbsolute(base) ? base : join(homedir(), '.config'), 'wharf', name);
}

/** Reads the object in a JSON file. Returns undefined when the file does not exist. */
export async function readJsonFile(path: string): Promise<Record<string, unknown> | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${path}: ${(error as Error).message}`);
  }
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${path} is not a JSON object: correct or delete it`);
  }
  return value as Record<string, unknown>;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Replaces a file atomically. Only its user can read it. */
export async function writeJsonFile(path: string, value: object): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`);
    await file.sync();
    await file.close();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

const LOCK_TIMEOUT_MS = 45_000;
/** Far longer than any lock is needed. An older lock is from a process that was killed. */
const LOCK_STALE_MS = 30_000;

/** Locks a file against other processes while `work` runs. */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const deadline = systemClock() + LOCK_TIMEOUT_MS;
  while (!(await acquireLock(lock))) {
    if (systemClock() > deadline)
      throw new Error(`the file is locked: delete ${lock} if no other wharf command is running`);
    await pause(25);
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

/** Tries to lock once and returns whether it succeeded. */
async function acquireLock(lock: string): Promise<boolean> {
  try {
    await (await open(lock, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const lockFile = await stat(lock).catch(() => undefined);
  if (lockFile && systemClock() - lockFile.mtimeMs > LOCK_STALE_MS) await rm(lock, { force: true });
  return false;
}
