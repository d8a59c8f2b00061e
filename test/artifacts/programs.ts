import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { run } from '../../tools/release/run.ts';
import { DOWNLOAD_ERROR } from '../support/go-program.ts';
import { SkippedError } from './check.ts';

const root = join(import.meta.dirname, '../..');

/** Throws a SkippedError if a program is not installed. */
export function requireProgram(name: string): void {
  if (spawnSync('which', [name]).status !== 0) throw new SkippedError(`${name} is not installed`);
}

/** Throws a SkippedError unless this process is root on Linux, as containers without a user namespace need. */
export function requireRoot(): void {
  if (process.getuid?.() !== 0) throw new SkippedError('it needs root');
}

/**
 * Builds a program of the Go module in this directory. Its cache makes this quick the second time. Throws a
 * SkippedError if Go is not installed or cannot download the module.
 */
export function goProgram(target: string, scratch: string): string {
  requireProgram('go');
  const program = join(scratch, basename(target));
  const { status, stderr } = spawnSync('go', ['build', '-o', program, target], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  });
  if (status === 0) return program;
  if (DOWNLOAD_ERROR.test(stderr)) throw new SkippedError(`Go cannot download ${target}: ${stderr.trim()}`);
  throw new Error(`${target} cannot be built:\n${stderr}`);
}

/** Runs a module of the packages in requirements.txt, which are installed once. Returns its standard output. */
export function runPython(module: string, args: readonly string[]): string {
  requireProgram('python3');
  const requirements = join(import.meta.dirname, 'requirements.txt');
  const id = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16);
  const directory = join(root, 'node_modules/.cache/wharf-python', id);
  if (!existsSync(directory)) {
    const installing = `${directory}.new`;
    rmSync(installing, { recursive: true, force: true });
    mkdirSync(installing, { recursive: true });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', installing];
    const { status, stderr } = spawnSync('python3', [...pip, '-r', requirements], { encoding: 'utf8' });
    if (status !== 0) throw new SkippedError(`pip cannot install the packages of requirements.txt: ${stderr.trim()}`);
    run('mv', [installing, directory], root);
  }
  return run('python3', ['-m', module, ...args], root, { ...process.env, PYTHONPATH: directory });
}
