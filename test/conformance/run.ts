/**
 * Runs the conformance suite of the OCI distribution specification against the registry. The suite is built from its Go
 * module at the version in go.mod. Every test must pass: a failed, skipped or disabled test is a failure.
 *
 * Run it with `npm run test:conformance`, or with `npm run test:conformance -- PostgreSQL` on PostgreSQL.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { findDatabase } from '../support/databases.ts';
import { testWithGoProgram } from '../support/go-program.ts';
import { spawnServer } from '../support/process.ts';

const SUITE = 'github.com/opencontainers/distribution-spec/conformance';
const print = (line: string) => process.stdout.write(`${line}\n`);

await testWithGoProgram('conformance', { directory: import.meta.dirname, target: SUITE }, async (program, scratch) => {
  const location = await findDatabase(process.argv[2]).createDataLocation();
  const server = await spawnServer(location);
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
        OCI_USERNAME: 'any-user',
        OCI_PASSWORD: await mintOwnerToken(location.dataDir),
        OCI_RESULTS_DIR: join(scratch, 'results'),
        // Version 1.1, and the unreleased additions to it.
        OCI_VERSION: 'dev',
      },
    });
    let report = '';
    suite.stdout.setEncoding('utf8').on('data', (text: string) => {
      report += text;
    });
    await once(suite, 'exit');
    return reportCounts(report);
  } finally {
    await server.stop();
    await location.remove();
  }
});

/** Prints the counts of a report, and the whole report unless all tests passed. Returns whether all passed. */
function reportCounts(report: string): boolean {
  const counts = Object.fromEntries(
    [...report.matchAll(/^ {2}(Disabled|Skip|Pass|FAIL|Error|Total)\.+: +(\d+)$/gm)].map(([, status, n]) => [
      status,
      Number(n),
    ]),
  );
  const allPassed = counts.Pass > 0 && counts.Pass === counts.Total;
  if (!allPassed) print(report);
  print(
    `conformance: ${Object.entries(counts)
      .map(([status, n]) => `${status} ${n}`)
      .join(', ')}`,
  );
  return allPassed;
}
