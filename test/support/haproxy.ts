import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { pollUntil } from './poll-until.ts';

/** The configuration that operators copy. Tests replace its addresses. */
const EXAMPLE = new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url);

const START_ATTEMPTS = 5;

export const isHaproxyInstalled = (): boolean => spawnSync('haproxy', ['-v']).status === 0;

export interface Haproxy {
  /** The address of the frontend that balances requests: REST, the registry API and gRPC. */
  readonly url: string;
  /** The address of a frontend that balances connections (`mode tcp`), so that clients see the GOAWAY of a server. */
  readonly tcpUrl: string;
  /** The messages of HAProxy, such as why it considers a server to be down. */
  readonly output: readonly string[];
  /** What HAProxy counted for each server. */
  stats(): Promise<readonly ServerStats[]>;
  /** Sends a server no more requests, and waits until it has finished those that it has. */
  drain(server: string): Promise<void>;
  /** Reverses `drain`. */
  enable(server: string): Promise<void>;
  stop(): Promise<void>;
}

export interface ServerStats {
  readonly backend: string;
  /** `wharf1` for the first server. */
  readonly server: string;
  /** Such as `UP` or `DOWN`. */
  readonly status: string;
  readonly sessions: number;
  /** Requests that are running. */
  readonly currentSessions: number;
  /** Connections that could not be opened. */
  readonly connectionErrors: number;
  /** Responses that were cut or could not be parsed. */
  readonly responseErrors: number;
  /** Attempts to open a connection again, on the same or on another server. */
  readonly retries: number;
}

/** Starts HAProxy in front of servers, such as `127.0.0.1:8081`, with the configuration in deploy/haproxy. */
export async function startHaproxy(servers: readonly string[]): Promise<Haproxy> {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-haproxy-'));
  const socket = join(directory, 'stats');
  const files = [join(directory, 'haproxy.cfg'), join(directory, 'test.cfg')] as const;
  for (let attempt = 1; ; attempt++) {
    const [port, tcpPort] = await freePorts(2);
    writeFileSync(files[0], exampleFor(servers, `127.0.0.1:${port}`));
    writeFileSync(files[1], additionsFor(servers, socket, `127.0.0.1:${tcpPort}`));
    const child = spawn('haproxy', ['-db', ...files.flatMap((file) => ['-f', file])], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const output: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => output.push(line));
    const problem = await started(child, socket);
    if (problem === undefined) {
      return {
        url: `http://127.0.0.1:${port}`,
        tcpUrl: `http://127.0.0.1:${tcpPort}`,
        output,
        stats: () => readStats(socket),
        async drain(server) {
          await setState(socket, server, 'maint');
          const isIdle = (stats: readonly ServerStats[]): boolean =>
            stats.every((one) => one.server !== server || one.currentSessions === 0);
          await pollUntil(() => readStats(socket), isIdle);
        },
        enable: (server) => setState(socket, server, 'ready'),
        async stop() {
          child.kill('SIGKILL');
          if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
          rmSync(directory, { recursive: true, force: true });
        },
      };
    }
    // Another process may have taken a port in the meantime.
    if (attempt === START_ATTEMPTS) throw new Error(`HAProxy does not start: ${[problem, ...output].join('\n')}`);
  }
}

/** Waits until every backend of HAProxy has this server in this status. */
export async function untilServerIs(haproxy: Haproxy, server: string, status: 'UP' | 'DOWN'): Promise<void> {
  await pollUntil(haproxy.stats, (all) => all.every((one) => one.server !== server || one.status.startsWith(status)));
}

/** The example with other addresses. */
function exampleFor(servers: readonly string[], frontend: string): string {
  const lines = readFileSync(EXAMPLE, 'utf8').split('\n');
  const isServer = (line: string): boolean => /^\s*server wharf\d/.test(line);
  return lines
    .flatMap((line, index) => {
      if (/^\s*bind /.test(line)) return [`  bind ${frontend}`];
      if (!isServer(line)) return [line];
      if (isServer(lines[index - 1] ?? '')) return [];
      return servers.map((address, at) => {
        const options = line.includes('track') ? `track wharf/wharf${at + 1}` : '';
        return `  server wharf${at + 1} ${address} ${options}`;
      });
    })
    .join('\n');
}

const additionsFor = (servers: readonly string[], socket: string, frontend: string): string => `
global
  stats socket ${socket} level admin

listen wharf_tcp
  mode tcp
  timeout connect 5s
  timeout client 10m
  timeout server 10m
  bind ${frontend}
${servers.map((address, at) => `  server wharf${at + 1} ${address} track wharf/wharf${at + 1}`).join('\n')}
`;

/** Returns why HAProxy has ended, or undefined when it serves. */
async function started(child: ChildProcess, socket: string): Promise<string | undefined> {
  const ended = once(child, 'exit').then(
    ([code]) => `exit code ${code}`,
    (error: Error) => error.message,
  );
  const serving = pollUntil(
    () => readStats(socket).catch(() => []),
    (stats) => stats.length > 0 || child.exitCode !== null,
  ).then(() => (child.exitCode === null ? undefined : ended));
  return Promise.race([ended, serving]);
}

/** Sends a command to the administration socket of HAProxy. */
async function send(socket: string, command: string): Promise<string> {
  const connection = connect(socket);
  connection.end(`${command}\n`);
  return text(connection);
}

/** The backend of gRPC follows the backend of HTTP, which its servers track. */
async function setState(socket: string, server: string, state: 'maint' | 'ready'): Promise<void> {
  const answer = (await send(socket, `set server wharf/${server} state ${state}`)).trim();
  if (answer !== '') throw new Error(`HAProxy refused to change ${server}: ${answer}`);
}

/** The columns are those of the command `show stat`, in CSV with a header. */
async function readStats(socket: string): Promise<readonly ServerStats[]> {
  const [header = '', ...rows] = (await send(socket, 'show stat')).trim().split('\n');
  const columns = header.replace(/^# /, '').split(',');
  return rows
    .map((row) => {
      const values = row.split(',');
      return (column: string): string => values[columns.indexOf(column)] ?? '';
    })
    .filter((value) => value('svname').startsWith('wharf'))
    .map((value) => ({
      backend: value('pxname'),
      server: value('svname'),
      status: value('status'),
      sessions: Number(value('stot')),
      currentSessions: Number(value('scur')),
      connectionErrors: Number(value('econ')),
      responseErrors: Number(value('eresp')),
      retries: Number(value('wretr')) + Number(value('wredis')),
    }));
}

/** Ports that are free now. */
async function freePorts(count: number): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = listeners.map((server) => (server.address() as { port: number }).port);
  await Promise.all(listeners.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
