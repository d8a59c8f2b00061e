import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Matches the errors of `go` when it cannot download a module. */
export const DOWNLOAD_ERROR =
  /reading https?:\S+: [45]\d\d |server response:|dial tcp|no such host|i\/o timeout|TLS handshake/;

/**
 * Builds the package `target` of the Go module in `directory`, and passes the program and a temporary directory to
 * `run`, which returns whether the test passed. Sets the exit code of this process if the test failed.
 *
 * If Go is not installed, or cannot download a module, the test is skipped and passes. In CI (the environment has
 * CI=true) both are failures, so that they do not hide a failing test.
 */
export async function testWithGoProgram(
  name: string,
  { directory, target }: { readonly directory: string; readonly target: string },
  run: (program: string, scratch: string) => Promise<boolean>,
): Promise<void> {
  if (spawnSync('go', ['version']).status !== 0) return skip(name, 'Go is not installed', 'Install Go.');
  const scratch = mkdtempSync(join(tmpdir(), `wharf-${name}-`));
  try {
    print(`${name}: building…`);
    const program = join(scratch, name);
    const build = spawnSync('go', ['build', '-o', program, target], { cwd: directory, encoding: 'utf8' });
    if (build.status === 0) {
      if (!(await run(program, scratch))) process.exitCode = 1;
    } else {
      process.stderr.write(build.stderr);
      reportBuildFailure(name, build.stderr);
    }
  } catch (error) {
    print(`${name}: ${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function reportBuildFailure(name: string, output: string): void {
  if (DOWNLOAD_ERROR.test(output)) {
    const advice = 'Give Go access to a module proxy (GOPROXY), or run "go mod download" where it has access.';
    skip(name, 'Go cannot download a module', advice);
  } else {
    print(`${name}: FAILED, because the Go program cannot be built`);
    process.exitCode = 1;
  }
}

function skip(name: string, reason: string, advice: string): void {
  if (process.env.CI === 'true') {
    print(`${name}: FAILED, because ${reason}. With CI=true this test must not be skipped. ${advice}`);
    process.exitCode = 1;
  } else {
    print(`${name}: SKIPPED, because ${reason}`);
  }
}
