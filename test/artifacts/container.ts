import { match, ok } from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../tools/release/run.ts';
import { pollUntil } from '../support/poll-until.ts';

export interface ContainerOptions {
  /** A directory for the configuration. */
  readonly directory: string;
  readonly rootfs: string;
  readonly args: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly uid: number;
  readonly mounts: readonly Mount[];
  readonly seccomp?: object;
}

export interface Mount {
  readonly destination: string;
  readonly source: string;
  readonly type: string;
  readonly options: readonly string[];
}

export interface Container {
  /** Runs a program in the container and returns its standard output. */
  exec(args: readonly string[], env?: Readonly<Record<string, string>>): string;
  /** The lines that the container has written. */
  output(): string;
  hasEnded(): boolean;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
  /** Ends the container if it still runs. */
  remove(): void;
}

const STOP_MS = 60_000;

export const bind = (source: string, destination: string, mode: 'ro' | 'rw'): Mount => ({
  destination,
  source,
  type: 'bind',
  options: ['rbind', mode],
});

/**
 * Runs a program with runc: as a user without capabilities, which cannot get any, on a read-only root, in namespaces of
 * its own. The network has the loopback device only, so ports are free.
 */
export function startContainer(options: ContainerOptions): Container {
  const id = `wharf-artifact-${process.pid}-${Math.floor(performance.now())}`;
  mkdirSync(options.directory, { recursive: true });
  writeFileSync(join(options.directory, 'config.json'), JSON.stringify(configurationOf(options)));
  const child = spawn('runc', ['run', '--bundle', options.directory, id], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  const output = outputOf(child);
  return {
    exec: (args, env = {}) => {
      const variables = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
      return run('runc', ['exec', ...variables, id, ...args], options.directory);
    },
    output,
    hasEnded: () => child.exitCode !== null,
    async stop() {
      run('runc', ['kill', id, 'TERM'], options.directory);
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(timer);
      return child.exitCode;
    },
    remove() {
      if (child.exitCode === null) run('runc', ['delete', '--force', id], options.directory);
    },
  };
}

/** Calls a server in the container over its API, with the commands that users run: creates and reads a group. */
export function useServer(container: Container, wharf: string): void {
  match(container.exec([wharf, 'ping']), /answered/);
  const env = { WHARF_TOKEN: container.exec([wharf, 'auth', 'token']).trim() };
  const organization = /"organization":"([0-9a-f]+)"/.exec(container.output())?.[1] ?? '';
  container.exec([wharf, 'iam', 'groups', 'create', '--parent', organization, '--name', 'from-artifact'], env);
  match(container.exec([wharf, 'iam', 'groups', 'list'], env), /from-artifact/);
}

/** Waits until the log of a server in the container says that it is serving. */
export async function waitUntilServing(container: Container): Promise<void> {
  const isServing = () => container.output().includes('"message":"serving"');
  await pollUntil(async () => isServing() || container.hasEnded(), Boolean);
  ok(isServing(), `the container has ended:\n${container.output()}`);
}

function outputOf(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return () => text;
}

const configurationOf = ({ rootfs, args, env, cwd, uid, mounts, seccomp }: ContainerOptions) => ({
  ociVersion: '1.0.2',
  process: {
    terminal: false,
    user: { uid, gid: uid },
    args,
    env,
    cwd,
    capabilities: {},
    noNewPrivileges: true,
    rlimits: [{ type: 'RLIMIT_CORE', soft: 0, hard: 0 }],
  },
  root: { path: rootfs, readonly: true },
  mounts: [{ destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] }, ...mounts],
  linux: {
    namespaces: ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type })),
    ...(seccomp && { seccomp }),
  },
});
