import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { v8Flags } from '../../src/cli/v8-flags.ts';
import { type Dataset, loginToken } from '../data.ts';

const PROGRAM = join(import.meta.dirname, '../../dist/wharf.js');

export interface BenchServer {
  readonly url: string;
  readonly pid: number;
  /** An access token for the caller of the dataset. */
  readonly token: string;
  /** The authorization header with that token. */
  readonly headers: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export interface BenchServerOptions {
  readonly databaseUrl?: string | undefined;
  readonly workers?: number;
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a server in a separate process with the default settings. Its log goes to a temporary file. */
export async function startBenchServer(data: Dataset, options: BenchServerOptions = {}): Promise<BenchServer> {
  const { databaseUrl, workers, execArgv = [], env = {} } = options;
  const log = openSync(join(mkdtempSync(join(tmpdir(), 'wharf-bench-')), 'log'), 'a');
  const child = spawn(process.execPath, [...v8Flags, ...execArgv, PROGRAM, 'serve'], {
    env: {
      PATH: process.env.PATH ?? '',
      WHARF_LISTEN: '127.0.0.1:0',
      WHARF_DATA: data.dataDir,
      ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }),
      ...(workers !== undefined && { WHARF_WORKERS: String(workers) }),
      ...env,
    },
    stdio: ['ignore', 'pipe', log],
  });
  const ended = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    if (child.stdout === null) throw new Error('the server has no output');
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /serves (\S+)$/.exec(line)?.[1];
      if (found) resolve(found);
    });
    void ended.then(() => reject(new Error('the server exited before it listened')));
  });
  const token = await exchangeToken(url, data);
  return {
    url,
    pid: child.pid ?? 0,
    token,
    headers: { authorization: `Bearer ${token}` },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Exchanges the token of the caller's issuer for an access token, as a client does. */
async function exchangeToken(url: string, { caller }: Dataset): Promise<string> {
  const query = new URLSearchParams({ aud: url, identity: caller.identity });
  const response = await fetch(`${url}/sts/exchange?${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await loginToken(caller)}` },
  });
  const { token } = (await response.json()) as { token?: string };
  if (!token) throw new Error(`the token exchange returned ${response.status}`);
  return token;
}
