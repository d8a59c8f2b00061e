import { accessSync, constants } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';

/** Says that this process began anew, so that it does so once only, whatever becomes of the cache. */
const BEGAN_ANEW = 'BEGAN_ANEW_COMPILED';

/**
 * The first start of a version strips types and compiles, and would hold what that took, 25 MB, for as long as it serves.
 * So once everything is loaded it saves what it compiled, and the same process begins anew with that.
 */
export function beginAnewIfCompiled(): void {
  const { execve, env } = process;
  const directory = getCompileCacheDir();
  const isSecond = env[BEGAN_ANEW] !== undefined;
  delete env[BEGAN_ANEW];
  // A worker would lose its channel to the supervisor.
  if (isSecond || !execve || process.channel || !directory || !isWritable(directory) || !hasStripped()) return;
  flushCompileCache();
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  execve.call(process, process.execPath, args, { ...env, [BEGAN_ANEW]: 'true' });
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Node loads its stripper, which it calls amaro, with the first file that is not in the cache. */
const hasStripped = (): boolean =>
  (process as { readonly moduleLoadList?: readonly string[] }).moduleLoadList?.some((name) =>
    name.includes('/amaro/'),
  ) ?? false;
