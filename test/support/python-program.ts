import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A Python that has the packages of a program, or why there is none. */
export type PythonEnvironment = { readonly python: string } | { readonly missing: string };

/**
 * Returns a Python with the packages of a requirements file, which has their versions and hashes. It is a virtual
 * environment in the cache directory of the user, made once for each content of the file and version of Python.
 */
export function findPython(requirements: string): PythonEnvironment {
  const version = spawnSync('python3', ['--version'], { encoding: 'utf8' });
  if (version.status !== 0) return { missing: 'python3 is not installed' };
  const key = createHash('sha256').update(readFileSync(requirements)).update(version.stdout).digest('hex').slice(0, 16);
  const directory = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'wharfinger', `python-${key}`);
  const python = join(directory, 'bin', 'python');
  // Written last, so that an interrupted installation is repeated.
  const complete = join(directory, 'complete');
  if (existsSync(complete)) return { python };
  mkdirSync(directory, { recursive: true });
  const made = run('python3', ['-m', 'venv', '--clear', directory]);
  if (made !== undefined)
    return { missing: `python3 cannot make a virtual environment (Debian: python3-venv): ${made}` };
  const packages = ['--require-hashes', '--only-binary', ':all:', '-r', requirements];
  const installed = run(python, ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...packages]);
  if (installed !== undefined) return { missing: `pip cannot install the packages: ${installed}` };
  writeFileSync(complete, '');
  return { python };
}

/** Returns the last line of the output of a command that failed. */
function run(command: string, args: readonly string[]): string | undefined {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? undefined : `${stderr}${stdout}`.trim().split('\n').at(-1) || `${command} failed`;
}
