import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '../../base/clock.ts';

/** A file of this user in the configuration directory (XDG Base Directory specification; a relative path counts as unset). */
export function userFile(name: string): string {
  const base = process.env.XDG_CONFIG_HOME ?? '';
  return join(isAbsolute(base) ? base : join(homedir(), '.config'), 'wharf', name);
}

/** The object in a JSON file; nothing when there is no file. */
export async function readObject(path: string): Promise<Record<string, unknown> | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${path}: ${(error as Error).message}`);
  }
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${path} is not a JSON object: mend or delete it`);
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

/** Readable by its user alone, and never half-written, also when two programs write at once. */
export async function writeObject(path: string, value: object): Promise<void> {
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

const LOCK_PATIENCE_MS = 45_000;
/** No holder takes nearly as long; one that was killed has left its lock behind. */
const LOCK_STALE_MS = 30_000;

/** Lets one program at a time work on a file. */
export async function locked<T>(path: string, work: () => Promise<T>): Promise<T> {
  const lock = `${path}.lock`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const deadline = systemClock() + LOCK_PATIENCE_MS;
  while (!(await taken(lock))) {
    if (systemClock() > deadline) throw new Error(`another program holds ${lock}: delete it if none is running`);
    await pause(25);
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

/** Whether the lock is ours now. */
async function taken(lock: string): Promise<boolean> {
  try {
    await (await open(lock, 'wx', 0o600)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = await stat(lock).catch(() => undefined);
  if (found && systemClock() - found.mtimeMs > LOCK_STALE_MS) await rm(lock, { force: true });
  return false;
}
