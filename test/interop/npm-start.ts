import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DataLocation } from '../support/databases.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Longer than a server needs to finish its running requests. */
const STOP_MS = 30_000;

export interface StartedServer {
  readonly url: string;
  readonly organization: string;
  /** Stops the server and waits until it has exited. */
  stop(): Promise<void>;
}

/** Starts a server with `npm start`. */
export async function npmStart(location: DataLocation, listen: string): Promise<StartedServer> {
  const npm = spawn('npm', ['start'], {
    cwd: ROOT,
    env: {
      ...{ PATH: process.env.PATH, HOME: process.env.HOME },
      ...{ WHARF_LISTEN: listen, WHARF_DATA: location.dataDir, WHARF_ALLOW_INSECURE_SINKS: 'true' },
      ...(location.databaseUrl !== undefined && { WHARF_DATABASE_URL: location.databaseUrl }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
    // A separate process group: npm does not wait for the server, so a signal must reach both.
    detached: true,
  });
  // The server inherits stderr, so 'close' comes when both processes have ended.
  let hasEnded = false;
  const ended = once(npm, 'close').then(() => {
    hasEnded = true;
  });
  const output: string[] = [];
  const started = await new Promise<{ url: string; organization: string }>((resolve, reject) => {
    createInterface({ input: npm.stderr }).on('line', (line) => {
      output.push(line);
      const [, url, organization] = /"url":"(http[^"]+)","organization":"([0-9a-f]{40})"/.exec(line) ?? [];
      if (url && organization) resolve({ url, organization });
    });
    void ended.then(() => reject(new Error(`npm start exited before the server listened:\n${output.join('\n')}`)));
  });
  return {
    ...started,
    async stop() {
      if (hasEnded || npm.pid === undefined) return;
      process.kill(-npm.pid, 'SIGTERM');
      await Promise.race([ended, setTimeout(STOP_MS, undefined, { ref: false })]);
      if (hasEnded) return;
      process.kill(-npm.pid, 'SIGKILL');
      throw new Error(`the server did not stop:\n${output.slice(-20).join('\n')}`);
    },
  };
}
