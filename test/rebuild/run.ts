/**
 * Rebuilds the listing index of repos after a change of their declaration, with clients that read and write, and kills the
 * server ten times in between. Checks that lists are right all the time, and that the index is consistent afterwards.
 * Then runs two builds with different declarations on one PostgreSQL.
 *
 * Run it with `npm run test:rebuild`, or with `npm run test:rebuild -- PostgreSQL` on PostgreSQL only.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { databases, findDatabase } from '../support/databases.ts';
import { createFormerData, rebuildWithKills } from './scenario.ts';

const REPOS = 12_000;
const KILLS = 10;

async function rebuildOn(name: string): Promise<void> {
  const started = performance.now();
  const data = await createFormerData(findDatabase(name), REPOS);
  try {
    const { checks, writes, refused } = await rebuildWithKills(data, KILLS);
    assert.ok(refused > 0, 'no list was long enough to need the index');
    const seconds = Math.round((performance.now() - started) / 1000);
    process.stdout.write(
      `rebuild on ${name}: ${REPOS} repos, ${KILLS} kills, ${checks} checks of lists, ${refused} refused long lists and ${writes} writes in ${seconds} s\n`,
    );
  } finally {
    await data.location.remove();
  }
}

const [selected] = process.argv.slice(2);
if (selected !== undefined) {
  await rebuildOn(selected);
} else {
  // At the same time: each waits often for its server.
  const children = databases.map(({ name }) =>
    spawn(process.execPath, [import.meta.filename, name], { stdio: 'inherit' }),
  );
  const results = await Promise.all(children.map((child) => once(child, 'exit')));
  assert.deepEqual(
    results.map(([code]) => code),
    databases.map(() => 0),
  );
  const file = join(import.meta.dirname, 'rolling-upgrade.ts');
  const { status } = spawnSync(process.execPath, ['--test', file], { stdio: 'inherit' });
  assert.equal(status, 0, 'two builds with different declarations on one PostgreSQL');
}
// The PostgreSQL of the tests would keep the process alive.
process.exit(0);
