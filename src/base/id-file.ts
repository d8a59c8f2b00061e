import { readFile, writeFile } from 'node:fs/promises';

/** Reads a file that consists of an id. Returns undefined if it does not exist. */
export async function readIdFile(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${path}: ${(error as Error).message}`);
  }
}

/** Writes an id to a file unless it exists. On a full disk it does nothing: the next start writes the file. */
export async function createIdFile(path: string, id: string): Promise<void> {
  try {
    await writeFile(path, `${id}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['EEXIST', 'ENOSPC', 'EDQUOT'].includes(code)) throw error;
  }
}
