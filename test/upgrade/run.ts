/**
 * Tests of upgrades, with the release before this one: its data is used by this version and back, two servers are
 * upgraded under load, and a server moves from SQLite to PostgreSQL.
 *
 *   npm run test:upgrade
 *   npm run test:upgrade -- data rolling
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { isHaproxyInstalled } from '../support/haproxy.ts';
import { prepareEarlierRelease } from './earlier-release.ts';

const parts = {
  data: () => problemOf(prepareEarlierRelease()),
  rolling: () =>
    isHaproxyInstalled()
      ? problemOf(prepareEarlierRelease())
      : 'HAProxy is not installed: run tools/install-test-tools.sh',
  'db-copy': () => undefined,
};

const problemOf = (prepared: object): string | undefined =>
  'problem' in prepared ? String(prepared.problem) : undefined;

const print = (line: string): void => void process.stdout.write(`upgrade: ${line}\n`);

const selected = process.argv.slice(2);
for (const [part, findProblem] of Object.entries(parts)) {
  if (selected.length > 0 && !selected.includes(part)) continue;
  const problem = findProblem();
  if (problem !== undefined) {
    print(`SKIPPED ${part}, because ${problem}`);
    if (process.env.CI === 'true') process.exitCode = 1;
    continue;
  }
  const file = join(import.meta.dirname, `${part}.ts`);
  const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', file], { stdio: 'inherit' });
  print(`${part}: ${status === 0 ? 'passed' : 'FAILED'}`);
  if (status !== 0) process.exitCode = 1;
}
