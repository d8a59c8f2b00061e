import { accessSync, constants } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';

/** The variable that marks a restarted process, so that it restarts only once even if the cache cannot be used. */
const RESTARTED = 'RESTARTED_FROM_COMPILE_CACHE';

/**
 * Restarts the process if it had to strip types and compile. The first start of a version does so, and would keep the
 * 25 MB that this takes for as long as it serves. When everything is loaded, the compile cache is saved and the
 * process replaces itself (execve) with one that loads the cache.
 */
export function restartFromCompileCache(): void {
  const { execve, env } = process;
  const directory = getCompileCacheDir();
  const isRestarted = env[RESTARTED] !== undefined;
  delete env[RESTARTED];
  // A worker cannot restart: it would lose its IPC channel to the supervisor.
  if (isRestarted || !execve || process.channel || !directory || !isWritable(directory) || !hasStrippedTypes()) return;
  flushCompileCache();
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  execve.call(process, process.execPath, args, { ...env, [RESTARTED]: 'true' });
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Node loads its type stripper, amaro, with the first file that is not in the cache. */
const hasStrippedTypes = (): boolean =>
  (process as { readonly moduleLoadList?: readonly string[] }).moduleLoadList?.some((name) =>
    name.includes('/amaro/'),
  ) ?? false;
