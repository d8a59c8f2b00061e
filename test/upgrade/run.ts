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
import { prepareEarlierRelease, type Unavailable } from './earlier-release.ts';

const parts: Readonly<Record<string, () => Unavailable | undefined>> = {
  data: findEarlierRelease,
  rolling: () =>
    isHaproxyInstalled()
      ? findEarlierRelease()
      : { problem: 'HAProxy is not installed: run tools/install-test-tools.sh' },
  'db-copy': () => undefined,
};

function findEarlierRelease(): Unavailable | undefined {
  const prepared = prepareEarlierRelease();
  return 'problem' in prepared ? prepared : undefined;
}

const print = (line: string): void => void process.stdout.write(`upgrade: ${line}\n`);

const selected = process.argv.slice(2);
for (const [part, findUnavailable] of Object.entries(parts)) {
  if (selected.length > 0 && !selected.includes(part)) continue;
  const unavailable = findUnavailable();
  if (unavailable !== undefined) {
    print(`SKIPPED ${part}, because ${unavailable.problem}`);
    if (process.env.CI === 'true' && !unavailable.hasNoHistory) process.exitCode = 1;
    continue;
  }
  const file = join(import.meta.dirname, `${part}.ts`);
  const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', file], { stdio: 'inherit' });
  print(`${part}: ${status === 0 ? 'passed' : 'FAILED'}`);
  if (status !== 0) process.exitCode = 1;
}
