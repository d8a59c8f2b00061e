/**
 * Runs the tests of traces against the OTLP receiver of the OpenTelemetry Collector, a Go program. `npm test` runs them
 * against a receiver that reads only the fields that the tests use.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { testWithGoProgram } from '../support/go-program.ts';

await testWithGoProgram(
  'monitoring',
  { directory: join(import.meta.dirname, 'collector'), target: '.' },
  async (program) => {
    const { status } = spawnSync(process.execPath, ['--test', join(import.meta.dirname, 'traces.test.ts')], {
      env: { ...process.env, TEST_COLLECTOR: program },
      stdio: 'inherit',
    });
    return status === 0;
  },
);
