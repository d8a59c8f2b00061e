import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { protectDataDirectory } from '../../base/private-files.ts';
import type { Config } from '../../config.ts';

/** What `server.json` in a data directory says about the running server. */
export interface ServerRecord {
  readonly url: string;
  /** The URL on this machine, which differs if a proxy serves `url`. */
  readonly localUrl: string;
  readonly pid: number;
  /** When it started (ISO 8601). */
  readonly started: string;
}

export interface DataClaim {
  /** Records the address of this server in the data directory. */
  record(urls: Pick<ServerRecord, 'url' | 'localUrl'>): void;
  /** Removes the record and unlocks the directory. */
  release(): void;
}

/**
 * Makes this process the only server of its SQLite database. Throws if there is another one. Servers that share a
 * PostgreSQL database can share a data directory too.
 */
export async function claimData({ data, databaseUrl }: Config, log: Log): Promise<DataClaim> {
  // Before a file is created in it.
  for (const change of protectDataDirectory(data)) log.warn({}, change);
  const unlock = databaseUrl === undefined ? await lock(data) : () => {};
  return {
    record({ url, localUrl }) {
      writeRecord(data, { url, localUrl, pid: process.pid, started: new Date().toISOString() });
    },
    release() {
      if (readRecord(data)?.pid === process.pid) rmSync(pathOf(data), { force: true });
      unlock();
    },
  };
}

async function lock(data: string): Promise<() => void> {
  const { tryLockServer } = await import('../../store/server-lock.ts');
  const unlock = tryLockServer(data);
  if (unlock !== undefined) return unlock;
  const other = readRecord(data);
  const which = other ? ` (process ${other.pid}, ${other.url})` : '';
  throw new Error(
    `another server is running on the data directory ${data}${which}: stop it, or set WHARF_DATA to another ` +
      'directory. Several servers can share a PostgreSQL database (WHARF_DATABASE_URL)',
  );
}

const pathOf = (data: string): string => join(data, 'server.json');

function writeRecord(data: string, record: ServerRecord): void {
  const temporary = `${pathOf(data)}.${process.pid}`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, `${JSON.stringify(record)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(temporary, pathOf(data));
}

/** Returns what the last server has recorded. After a crash it is still there. */
export function readRecord(data: string): ServerRecord | undefined {
  try {
    const { url, localUrl, pid, started } = JSON.parse(readFileSync(pathOf(data), 'utf8')) as Partial<ServerRecord>;
    const areTexts = typeof url === 'string' && typeof localUrl === 'string' && typeof started === 'string';
    return areTexts && typeof pid === 'number' ? { url, localUrl, pid, started } : undefined;
  } catch {
    return undefined;
  }
}
