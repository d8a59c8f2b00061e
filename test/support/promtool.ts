import { spawnSync } from 'node:child_process';

/** Why tests that need promtool are skipped, or false. In CI they are not: there a missing program is a failure. */
export const promtoolSkip: string | false =
  spawnSync('promtool', ['--version']).error === undefined || process.env.CI === 'true'
    ? false
    : 'SKIPPED: promtool is not installed; on Debian: apt-get install prometheus';

/** Runs promtool. Throws with its output if it fails, or if it finds something to complain about. */
export function promtool(args: readonly string[], input?: string): void {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`promtool ${args.join(' ')} failed:\n${stdout}${stderr}`);
}
