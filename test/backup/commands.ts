import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { PROGRAM } from '../../src/cli/built-program.testing.ts';
import type { DataLocation } from '../support/databases.ts';

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The variables that the commands get besides the place of the data. S3 needs some. */
export const commandEnv: Record<string, string> = {};

/** Starts `wharf` with the settings of a server. */
export function startWharf(
  args: readonly string[],
  location?: Pick<DataLocation, 'dataDir' | 'databaseUrl'>,
): { readonly child: ChildProcess; readonly done: Promise<Finished> } {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      XDG_CONFIG_HOME: '/nonexistent',
      ...(location && { WHARF_DATA: location.dataDir }),
      ...(location?.databaseUrl !== undefined && { WHARF_DATABASE_URL: location.databaseUrl }),
      ...commandEnv,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const finish = async (): Promise<Finished> => {
    const ended = once(child, 'close');
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    await ended;
    return { code: child.exitCode, stdout, stderr };
  };
  return { child, done: finish() };
}

/** Runs `wharf` and returns its output. Fails if it has another exit code. */
export async function wharf(
  args: readonly string[],
  location?: Pick<DataLocation, 'dataDir' | 'databaseUrl'>,
  expectedCode = 0,
): Promise<Finished> {
  const finished = await startWharf(args, location).done;
  const { code, stdout, stderr } = finished;
  assert.equal(code, expectedCode, `wharf ${args.join(' ')}: exit code ${code}\n${stdout}${stderr}`);
  return finished;
}

export interface CreatedBackup {
  readonly id: string;
  readonly moment: string;
  readonly blobs: { readonly count: number; readonly copied: number; readonly copiedBytes: number };
}

export async function createBackup(
  target: string,
  location: DataLocation,
  ...flags: readonly string[]
): Promise<CreatedBackup> {
  const { stdout } = await wharf(['backup', 'create', target, '-o', 'json', ...flags], location);
  return JSON.parse(stdout);
}

export async function listBackups(target: string): Promise<readonly { readonly id: string }[]> {
  return JSON.parse((await wharf(['backup', 'list', target, '-o', 'json'])).stdout);
}
