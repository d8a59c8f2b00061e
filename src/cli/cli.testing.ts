import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { PROGRAM } from './built-program.testing.ts';
import { addClientCommands } from './client-commands.ts';
import { run } from './program.ts';
import { v8Flags } from './v8-flags.ts';

export interface Result {
  /** The exit code, or -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the real program with these environment variables only, and without the configuration of the user. */
export function start(
  args: readonly string[],
  env: Record<string, string>,
): { child: ChildProcess; done: Promise<Result> } {
  const { promise, resolve } = Promise.withResolvers<Result>();
  const options = { env: { PATH: process.env.PATH, XDG_CONFIG_HOME: '/nonexistent', ...env } };
  const child = execFile(process.execPath, [...v8Flags, PROGRAM, ...args], options, (error, stdout, stderr) => {
    resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr });
  });
  return { child, done: promise };
}

/** Runs the real program to its end. `input` is its standard input. */
export function wharf(args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<Result> {
  const { child, done } = start(args, env);
  child.stdin?.end(input);
  return done;
}

/**
 * Runs a command line in this process, which is faster than starting another. Of the variables that begin with WHARF_
 * only those in `env` are set. With `columns`, the output is a terminal.
 */
export async function runInProcess(
  args: readonly string[],
  env: Record<string, string> = {},
  { columns }: { readonly columns?: number } = {},
): Promise<Result> {
  const before = { ...process.env };
  for (const name of Object.keys(before)) if (name.startsWith('WHARF_')) delete process.env[name];
  Object.assign(process.env, { XDG_CONFIG_HOME: '/nonexistent', ...env });
  let stdout = '';
  let stderr = '';
  try {
    const code = await run(args, addClientCommands, {
      writeOut: (text) => {
        stdout += text;
      },
      writeErr: (text) => {
        stderr += text;
      },
      // Commander declares a number, but returns undefined itself without a terminal.
      getOutHelpWidth: () => columns as number,
      getErrHelpWidth: () => columns as number,
    });
    return { code, stdout, stderr };
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

/** Creates a directory that is deleted after the test. */
export function temporaryDirectory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'wharf-cli-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A request that the fake server received. */
export interface ReceivedRequest {
  readonly verb: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The response of the fake server: a status and a text, or a JSON value. */
export type FakeResponse = { readonly status: number; readonly text: string } | { readonly json: unknown };

/** Starts a fake server that is stopped after the test, and returns its URL. */
export async function startFakeServer(
  t: TestContext,
  respond: (request: ReceivedRequest) => FakeResponse,
): Promise<string> {
  const server = createServer(async (req, res) => {
    const body = (await req.toArray()).join('');
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://fake-server');
    const { method = '', headers } = req;
    const response = respond({ verb: method, path: pathname, query: searchParams, headers, body });
    if ('json' in response) res.end(JSON.stringify(response.json));
    else res.writeHead(response.status).end(response.text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
