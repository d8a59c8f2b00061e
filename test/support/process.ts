import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PROGRAM } from '../../src/cli/built-program.testing.ts';
import { startFlags } from '../../src/cli/v8-flags.ts';
import type { DataLocation } from './databases.ts';

/** Longer than a server needs to finish its running requests. */
const STOP_MS = 30_000;

export interface ServerProcess {
  readonly url: string;
  readonly process: ChildProcess;
  /** The log lines so far. */
  readonly log: readonly string[];
  /** Kills the process without a shutdown, like a power failure. */
  kill(): Promise<void>;
  /** Stops the server and returns its exit code. */
  stop(): Promise<number | null>;
}

/** Starts a server in a separate process, by default with the flags of `npm start`. */
export async function spawnServer(
  location: DataLocation,
  env: Record<string, string> = {},
  flags: readonly string[] = startFlags,
  program = PROGRAM,
  args: readonly string[] = ['serve'],
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [...flags, program, ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      WHARF_LISTEN: '127.0.0.1:0',
      WHARF_DATA: location.dataDir,
      ...(location.databaseUrl !== undefined && { WHARF_DATABASE_URL: location.databaseUrl }),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stderr });
  const output: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      output.push(line);
      const found = /"url":"(https?:[^"]+)"/.exec(line)?.[1];
      if (found) resolve(found);
    });
    void ended.then(() => reject(new Error(`the server exited before it listened:\n${output.join('\n')}`)));
  });
  return {
    url,
    process: child,
    log: output,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(timer);
      if (child.signalCode === 'SIGKILL') throw new Error(`the server did not stop:\n${output.slice(-20).join('\n')}`);
      return child.exitCode;
    },
  };
}
