/**
 * Loses the files of servers one after the other and recovers them as docs/RECOVERY.md says: the database, the blobs,
 * the master key, the disk space. Run it with `npm run test:recovery`.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const suites = ['lost-directories.ts', 'lost-master-key.ts', 'full-disk.ts'];
const { status } = spawnSync(
  process.execPath,
  ['--test', '--test-concurrency=2', ...suites.map((file) => join(import.meta.dirname, file))],
  { stdio: 'inherit' },
);
process.exitCode = status ?? 1;
