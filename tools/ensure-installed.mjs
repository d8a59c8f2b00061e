// Runs before every npm script, on whatever Node the machine has: a fresh clone needs no other set-up step.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Time of last change, or 0 when the file is missing. */
const changed = (path) => statSync(`${root}${path}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;

// npm writes node_modules/.package-lock.json last, so an interrupted install is seen as missing.
if (changed('node_modules/.package-lock.json') < changed('package-lock.json')) {
  process.stderr.write('Installing dependencies (once)...\n');
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (done.status !== 0) process.exit(done.status ?? 1);
}
