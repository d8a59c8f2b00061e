import { type ChildProcess, execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const entry = fileURLToPath(new URL('wharf.ts', import.meta.url));

export interface Result {
  /** The exit code, or -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the real program, with no variables but these. */
export function start(
  args: readonly string[],
  env: Record<string, string>,
): { child: ChildProcess; done: Promise<Result> } {
  const { promise, resolve } = Promise.withResolvers<Result>();
  const options = { env: { PATH: process.env.PATH, ...env } };
  const child = execFile(process.execPath, [entry, ...args], options, (error, stdout, stderr) => {
    resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr });
  });
  return { child, done: promise };
}

/** Runs the real program to its end. */
export const wharf = (args: readonly string[], env: Record<string, string> = {}): Promise<Result> =>
  start(args, env).done;

/** A directory that goes away with the test. */
export function scratch(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'wharf-cli-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
