import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../base/sync-directory.ts';
import { type BackupTarget, type Content, MissingFileError, type TargetEntry } from './target.ts';

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const READ_CHUNK = 1024 * 1024;
/** Temporary files are on the same file system as the rest, so that they can be renamed. */
const TEMPORARY = 'in-progress';
const temporaryName = (runId: string): string => `${runId}.tmp`;

/** Stores backups in a directory. It is created when something is written. Its files are for its owner alone. */
export function openDirectoryTarget(root: string, runId: string): BackupTarget {
  const pathOf = (key: string): string => join(root, key);
  const temporary = join(root, TEMPORARY, temporaryName(runId));
  let files = 0;

  /** Writes and syncs a temporary file. */
  async function writeTemporary({ open: openSource }: Pick<Content, 'open'>): Promise<string> {
    await createDirectory(temporary);
    const path = join(temporary, String(files++));
    const file = await open(path, 'wx', FILE_MODE);
    try {
      for await (const chunk of openSource()) await writeAll(file, chunk);
      await file.sync();
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    return path;
  }

  const target: BackupTarget = {
    name: root,
    stagingDirectory: () => temporary,
    async freeBytes() {
      for (let path = root; ; path = dirname(path)) {
        const found = await statfs(path).catch(ignoreMissing);
        if (found) return found.bavail * found.bsize;
        if (path === dirname(path)) return undefined;
      }
    },
    readText: (key) => readFile(pathOf(key), 'utf8').catch(ignoreMissing),
    async *read(key) {
      const file = await open(pathOf(key)).catch(ignoreMissing);
      if (!file) throw new MissingFileError(key);
      try {
        for (;;) {
          const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(READ_CHUNK), 0, READ_CHUNK);
          if (bytesRead === 0) return;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await file.close();
      }
    },
    list: (prefix) => walk(root, prefix),
    async write(key, content) {
      const path = await writeTemporary(content);
      const parent = dirname(pathOf(key));
      await createDirectory(parent);
      await rename(path, pathOf(key));
      await syncDirectory(parent);
    },
    async writeIfAbsent(key, text) {
      await createDirectory(dirname(pathOf(key)));
      try {
        const file = await open(pathOf(key), 'wx', FILE_MODE);
        await file.writeFile(text);
        await file.sync();
        await file.close();
        await syncDirectory(dirname(pathOf(key)));
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw error;
      }
    },
    async remove(key) {
      await rm(pathOf(key), { force: true });
      // A directory that is not empty stays.
      if (dirname(key) !== '.') await rmdir(dirname(pathOf(key))).catch(() => {});
    },
    async removeLeftovers(liveRuns) {
      for (const name of (await readdir(join(root, TEMPORARY)).catch(ignoreMissing)) ?? []) {
        const owner = /^(.+)\.tmp$/.exec(name)?.[1];
        if (owner !== undefined && !liveRuns.has(owner))
          await rm(join(root, TEMPORARY, name), { recursive: true, force: true });
      }
    },
    async isEmpty() {
      const names = (await readdir(root).catch(ignoreMissing)) ?? [];
      return names.every((name) => name === 'lost+found');
    },
    close() {},
  };
  return target;
}

async function writeAll(
  file: { write(chunk: Uint8Array, at: number): Promise<{ bytesWritten: number }> },
  chunk: Uint8Array,
) {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

const createDirectory = (path: string): Promise<unknown> => mkdir(path, { recursive: true, mode: DIRECTORY_MODE });

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}

async function* walk(root: string, prefix: string): AsyncGenerator<TargetEntry> {
  const entries = (await readdir(join(root, prefix), { withFileTypes: true }).catch(ignoreMissing)) ?? [];
  // A directory is sorted as the prefix of its files.
  const names = entries
    .filter((entry) => entry.isDirectory() || entry.isFile())
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort();
  for (const name of names) {
    const key = prefix + name;
    if (name.endsWith('/')) {
      if (!/\.tmp\/$/.test(name)) yield* walk(root, key);
      continue;
    }
    const found = await stat(join(root, key)).catch(ignoreMissing);
    if (found) yield { key, size: found.size };
  }
}
