import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { v8Flags } from '../../src/cli/v8-flags.ts';
import type { Home } from './databases.ts';

const PROGRAM = fileURLToPath(new URL('../../src/cli/wharf.js', import.meta.url));

/** Longer than a server takes to finish what it is at. */
const STOP_MS = 30_000;

export interface ServerProcess {
  readonly url: string;
  readonly process: ChildProcess;
  /** What it has logged so far. */
  readonly log: readonly string[];
  /** Ends it without warning, as a power cut would. */
  kill(): Promise<void>;
  /** Asks it to stop and answers its exit code. */
  stop(): Promise<number | null>;
}

/** A server in a process of its own, as `npm start` runs it. */
export async function spawnServer(home: Home, env: Record<string, string> = {}): Promise<ServerProcess> {
  const child = spawn(process.execPath, [...v8Flags, PROGRAM, 'serve'], {
    env: {
      PATH: process.env.PATH ?? '',
      WHARF_LISTEN: '127.0.0.1:0',
      WHARF_DATA: home.dataDir,
      ...(home.databaseUrl !== undefined && { WHARF_DATABASE_URL: home.databaseUrl }),
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
    void ended.then(() => reject(new Error(`the server ended before it listened:\n${output.join('\n')}`)));
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
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(late);
      if (child.signalCode === 'SIGKILL') throw new Error(`the server did not stop:\n${output.slice(-20).join('\n')}`);
      return child.exitCode;
    },
  };
}
