// Runs before every npm script, on whatever Node the machine has: a fresh clone needs no other set-up step.
// Then runs the program in its argument, if there is one, on the Node that npm has installed. `&& node program` in
// the npm script would not: the shell remembers where it found `node` before the installation.
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

const program = process.argv[2];
if (program !== undefined) {
  const done = spawnSync('node', [program], { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' });
  process.exit(done.status ?? 1);
}
