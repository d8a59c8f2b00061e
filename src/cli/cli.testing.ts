import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from './program.ts';

const entry = fileURLToPath(new URL('wharf.js', import.meta.url));

export interface Result {
  /** The exit code, or -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the real program, with no variables but these, and without the configuration of whoever runs the tests. */
export function start(
  args: readonly string[],
  env: Record<string, string>,
): { child: ChildProcess; done: Promise<Result> } {
  const { promise, resolve } = Promise.withResolvers<Result>();
  const options = { env: { PATH: process.env.PATH, XDG_CONFIG_HOME: '/nonexistent', ...env } };
  const child = execFile(process.execPath, [entry, ...args], options, (error, stdout, stderr) => {
    resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr });
  });
  return { child, done: promise };
}

/** Runs the real program to its end, with this on its standard input. */
export function wharf(args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<Result> {
  const { child, done } = start(args, env);
  child.stdin?.end(input);
  return done;
}

/** A terminal of this many columns. */
export interface Screen {
  readonly columns?: number;
}

/**
 * Runs a command line in this process, which saves the start of another. Variables that are ours are those given here and
 * no others.
 */
export async function runHere(
  args: readonly string[],
  env: Record<string, string> = {},
  { columns }: Screen = {},
): Promise<Result> {
  const before = { ...process.env };
  for (const name of Object.keys(before)) if (name.startsWith('WHARF_')) delete process.env[name];
  Object.assign(process.env, { XDG_CONFIG_HOME: '/nonexistent', ...env });
  let stdout = '';
  let stderr = '';
  try {
    const code = await run(args, {
      writeOut: (text) => {
        stdout += text;
      },
      writeErr: (text) => {
        stderr += text;
      },
      // Commander asks for a number, and its own answer is undefined where there is no terminal.
      getOutHelpWidth: () => columns as number,
      getErrHelpWidth: () => columns as number,
    });
    return { code, stdout, stderr };
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

/** A directory that goes away with the test. */
export function scratch(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'wharf-cli-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A request as the stand-in for a server got it. */
export interface Received {
  readonly verb: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What it answers: a status and a text, or a value to be sent as JSON. */
export type Answer = { readonly status: number; readonly text: string } | { readonly json: unknown };

/** A stand-in for a server: its address. It goes away with the test. */
export async function standIn(t: TestContext, answer: (request: Received) => Answer): Promise<string> {
  const server = createServer(async (req, res) => {
    const body = (await req.toArray()).join('');
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://stand-in');
    const { method = '', headers } = req;
    const given = answer({ verb: method, path: pathname, query: searchParams, headers, body });
    if ('json' in given) res.end(JSON.stringify(given.json));
    else res.writeHead(given.status).end(given.text);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
