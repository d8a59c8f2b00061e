/**
 * Rebuilds the listing index of repos after a change of their declaration, with clients that read and write, and kills the
 * server ten times in between. Checks that lists are right all the time, and that the index is consistent afterwards.
 * Then runs two builds with different declarations on one PostgreSQL.
 *
 * Run it with `npm run test:rebuild`, or with `npm run test:rebuild -- PostgreSQL` on PostgreSQL only.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { databases, findDatabase } from '../support/databases.ts';
import { createFormerData, rebuildWithKills } from './scenario.ts';

const REPOS = 12_000;
const KILLS = 10;

const selected = process.argv[2] === undefined ? databases : [findDatabase(process.argv[2])];
for (const database of selected) {
  const started = performance.now();
  const data = await createFormerData(database, REPOS);
  try {
    const { checks, writes, refused } = await rebuildWithKills(data, KILLS);
    assert.ok(refused > 0, 'no list was long enough to need the index');
    const seconds = Math.round((performance.now() - started) / 1000);
    process.stdout.write(
      `rebuild on ${database.name}: ${REPOS} repos, ${KILLS} kills, ${checks} checks of lists, ${refused} refused long lists and ${writes} writes in ${seconds} s\n`,
    );
  } finally {
    await data.location.remove();
  }
}
if (selected.some(({ name }) => name === 'PostgreSQL')) {
  const file = join(import.meta.dirname, 'rolling-upgrade.ts');
  const { status } = spawnSync(process.execPath, ['--test', file], { stdio: 'inherit' });
  assert.equal(status, 0, 'two builds with different declarations on one PostgreSQL');
}
// The PostgreSQL of the tests would keep the process alive.
process.exit(0);
