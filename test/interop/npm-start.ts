import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Home } from '../support/databases.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Longer than a server takes to finish what it is at. */
const STOP_MS = 30_000;

export interface Started {
  readonly url: string;
  readonly organization: string;
  /** Asks it to stop, and waits until it has. */
  stop(): Promise<void>;
}

/** What anybody does with a clone: `npm start`. */
export async function npmStart(home: Home, listen: string): Promise<Started> {
  const npm = spawn('npm', ['start'], {
    cwd: ROOT,
    env: {
      ...{ PATH: process.env.PATH, HOME: process.env.HOME },
      ...{ WHARF_LISTEN: listen, WHARF_DATA: home.dataDir, WHARF_ALLOW_INSECURE_SINKS: 'true' },
      ...(home.databaseUrl !== undefined && { WHARF_DATABASE_URL: home.databaseUrl }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own: npm does not wait for what it runs, so both are told to stop.
    detached: true,
  });
  // The server holds this too, so that it closes when both have ended.
  let hasEnded = false;
  const ended = once(npm, 'close').then(() => {
    hasEnded = true;
  });
  const said: string[] = [];
  const serving = await new Promise<{ url: string; organization: string }>((resolve, reject) => {
    createInterface({ input: npm.stderr }).on('line', (line) => {
      said.push(line);
      const [, url, organization] = /"url":"(http[^"]+)","organization":"([0-9a-f]{40})"/.exec(line) ?? [];
      if (url && organization) resolve({ url, organization });
    });
    void ended.then(() => reject(new Error(`npm start ended before it listened:\n${said.join('\n')}`)));
  });
  return {
    ...serving,
    async stop() {
      if (hasEnded || npm.pid === undefined) return;
      process.kill(-npm.pid, 'SIGTERM');
      await Promise.race([ended, setTimeout(STOP_MS, undefined, { ref: false })]);
      if (hasEnded) return;
      process.kill(-npm.pid, 'SIGKILL');
      throw new Error(`the server did not stop:\n${said.slice(-20).join('\n')}`);
    },
  };
}
