/**
 * Judges the registry by the conformance suite of the OCI distribution specification, built from its Go module at the
 * version in go.mod: `npm run test:conformance`, or with `-- PostgreSQL` on that database. Nothing may fail, and nothing
 * may be left out.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { databaseNamed } from '../support/databases.ts';
import { judgeByGo } from '../support/go.ts';
import { spawnServer } from '../support/process.ts';

const SUITE = 'github.com/opencontainers/distribution-spec/conformance';
const say = (line: string) => process.stdout.write(`${line}\n`);

await judgeByGo('conformance', { directory: import.meta.dirname, target: SUITE }, async (program, scratch) => {
  const home = await databaseNamed(process.argv[2]).home();
  const server = await spawnServer(home);
  try {
    const suite = spawn(program, [], {
      cwd: scratch,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH ?? '',
        OCI_REGISTRY: new URL(server.url).host,
        OCI_TLS: 'disabled',
        OCI_REPO1: 'my-org/conformance',
        OCI_REPO2: 'my-org/conformance-2',
        OCI_USERNAME: 'anybody',
        OCI_PASSWORD: await mintOwnerToken(home.dataDir),
        OCI_RESULTS_DIR: join(scratch, 'results'),
        // All of 1.1, and what the specification has beyond it so far.
        OCI_VERSION: 'dev',
      },
    });
    let report = '';
    suite.stdout.setEncoding('utf8').on('data', (text: string) => {
      report += text;
    });
    await once(suite, 'exit');
    return isFlawless(report);
  } finally {
    await server.stop();
    await home.remove();
  }
});

/** Shows the figures of a report, and all of it when they are not as they should be. */
function isFlawless(report: string): boolean {
  const counts = Object.fromEntries(
    [...report.matchAll(/^ {2}(Disabled|Skip|Pass|FAIL|Error|Total)\.+: +(\d+)$/gm)].map(([, status, n]) => [
      status,
      Number(n),
    ]),
  );
  const flawless = counts.Pass > 0 && counts.Pass === counts.Total;
  if (!flawless) say(report);
  say(
    `conformance: ${Object.entries(counts)
      .map(([status, n]) => `${status} ${n}`)
      .join(', ')}`,
  );
  return flawless;
}
