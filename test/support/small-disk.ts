import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROGRAM } from '../../src/cli/built-program.testing.ts';

/** A small file system of its own, which only processes in its namespace see. */
export interface SmallDisk {
  /** Its path for processes in the namespace. */
  readonly path: string;
  /** Its path for this process. */
  readonly outside: string;
  /** The command and arguments that run `wharf` in the namespace. */
  command(...args: string[]): [program: string, args: string[]];
  /** Runs `wharf` in the namespace with this data directory. */
  wharf(...args: string[]): SpawnSyncReturns<string>;
  /** Writes files until no byte is free. */
  fill(): void;
  /** Deletes what `fill` wrote. */
  free(): void;
  remove(): Promise<void>;
}

/** Mounts a file system of this size. Returns undefined if this machine does not permit it. */
export async function mountSmallDisk(size: string): Promise<SmallDisk | undefined> {
  const path = mkdtempSync(join(tmpdir(), 'wharf-disk-'));
  const script = `mount -t tmpfs -o mode=0700,size=${size} tmpfs "$1" && echo mounted && exec sleep infinity`;
  const holder = spawn('unshare', ['--map-root-user', '--mount', 'sh', '-c', script, 'sh', path], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(holder, 'close').catch(() => {});
  const isMounted = await Promise.race([
    once(createInterface({ input: holder.stdout }), 'line').then(() => true),
    ended.then(() => false),
  ]);
  const remove = async (): Promise<void> => {
    holder.kill('SIGKILL');
    await ended;
    rmSync(path, { recursive: true, force: true });
  };
  if (!isMounted) {
    await remove();
    return undefined;
  }
  const outside = `/proc/${holder.pid}/root${path}`;
  const enter = ['-t', String(holder.pid), '-U', '-m', '--preserve-credentials', process.execPath, PROGRAM];
  const command = (...args: string[]): [string, string[]] => ['nsenter', [...enter, ...args]];
  return {
    path,
    outside,
    command,
    wharf: (...args) =>
      spawnSync(...command(...args), { encoding: 'utf8', env: { PATH: process.env.PATH ?? '', WHARF_DATA: path } }),
    fill() {
      for (let count = 0; statfsSync(outside).bavail > 0; count++) {
        const { bavail, bsize } = statfsSync(outside);
        writeFileSync(join(outside, `filler-${count}`), Buffer.alloc(Math.min(bavail * bsize, 4 * 1024 * 1024)));
      }
    },
    free() {
      for (let count = 0; count < 1000; count++) rmSync(join(outside, `filler-${count}`), { force: true });
    },
    remove,
  };
}
