import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** What `go` says when the network does not give it a module. */
const UNREACHABLE = /reading https?:\S+: [45]\d\d |server response:|dial tcp|no such host|i\/o timeout|TLS handshake/;

/**
 * Builds the package `target` of the module in `directory`, lets `judge` run it, and fails the process if it must. Where
 * there is no Go, or its modules are out of reach, it says so and passes: this judges the server and not the machine.
 */
export async function judgeByGo(
  name: string,
  { directory, target }: { readonly directory: string; readonly target: string },
  judge: (program: string, scratch: string) => Promise<boolean>,
): Promise<void> {
  if (spawnSync('go', ['version']).status !== 0) return say(`${name}: skipped, because Go is not installed`);
  const scratch = mkdtempSync(join(tmpdir(), `wharf-${name}-`));
  try {
    say(`${name}: building…`);
    const program = join(scratch, name);
    const built = spawnSync('go', ['build', '-o', program, target], { cwd: directory, encoding: 'utf8' });
    if (built.status === 0) {
      if (!(await judge(program, scratch))) process.exitCode = 1;
    } else {
      process.stderr.write(built.stderr);
      const isUnreachable = UNREACHABLE.test(built.stderr);
      if (!isUnreachable) process.exitCode = 1;
      say(`${name}: ${isUnreachable ? 'SKIPPED, because Go modules are out of reach' : 'cannot be built'}`);
    }
  } catch (error) {
    say(`${name}: ${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
