import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Child, startChild } from './child.ts';
import type { GeneratorOutcome, GeneratorTask } from './generator.ts';

const run = promisify(execFile);

export interface Target {
  readonly url: string;
  readonly path: string;
  /** Asked for in turn with it. */
  readonly morePaths?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON; sent by POST. */
  readonly body?: string;
}

export interface LoadOptions {
  readonly seconds: number;
  readonly connections?: number;
}

const isInstalled = (program: string): boolean => spawnSync('which', [program]).status === 0;
const hasWrk = isInstalled('wrk');
const hasH2load = isInstalled('h2load');

const CONNECTIONS = 32;
const GRPC_CONNECTIONS = 4;
const GRPC_STREAMS = 16;

let generator: Child | undefined;

/** What makes the load on this machine. */
export const generators = (): string =>
  [hasWrk ? 'wrk' : 'bundled (HTTP)', hasH2load ? 'h2load' : 'bundled (gRPC)'].join(', ');

/** Requests per second that are answered well, with as many at once as there are connections. */
export async function httpLoad(target: Target, { seconds, connections = CONNECTIONS }: LoadOptions): Promise<number> {
  const { url, path, morePaths = [], headers = {}, body = '' } = target;
  const all = { ...headers, ...(body !== '' && { 'content-type': 'application/json' }) };
  if (!hasWrk) {
    const { hostname, port } = new URL(url);
    return bundled({
      kind: 'http',
      host: hostname,
      port: Number(port),
      path,
      morePaths,
      headers: all,
      method: body === '' ? 'GET' : 'POST',
      body: Buffer.from(body),
      connections,
      streams: 1,
      seconds,
    });
  }
  const script = scriptFor(target);
  const lines = Object.entries(all).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const { stdout } = await run('wrk', [
    ...['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s'],
    ...[...(script === '' ? [] : ['-s', fileOf(script)]), ...lines, `${url}${path}`],
  ]);
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  // None at all in a second is what a very busy machine gives.
  if (/Non-2xx|Socket errors/.test(stdout) || !(perSecond >= 0)) throw new Error(`requests failed:\n${stdout}`);
  return perSecond;
}

/** The body of a POST, and several paths, wrk knows from a script only. */
function scriptFor({ path, morePaths = [], body = '' }: Target): string {
  const post = body === '' ? '' : `wrk.method = "POST"\nwrk.body = [==[${body}]==]\n`;
  if (morePaths.length === 0) return post;
  const requests = [path, ...morePaths].map((one) => `wrk.format(nil, "${one}")`);
  // Written out once, before the load begins.
  return `${post}local all, n
init = function() all, n = { ${requests.join(', ')} }, 0 end
request = function() n = n % #all + 1; return all[n] end\n`;
}

const scripts = new Map<string, string>();

function fileOf(script: string): string {
  let file = scripts.get(script);
  if (file === undefined) {
    file = join(mkdtempSync(join(tmpdir(), 'wharf-bench-')), 'wrk.lua');
    writeFileSync(file, script);
    scripts.set(script, file);
  }
  return file;
}

/** Calls per second of one gRPC method with one message. */
export async function grpcLoad(target: Omit<Target, 'body'>, message: Uint8Array, seconds: number): Promise<number> {
  const { url, path } = target;
  const headers = { 'content-type': 'application/grpc', te: 'trailers', ...target.headers };
  const body = frame(message);
  if (!hasH2load) {
    const { hostname, port } = new URL(url);
    const place = { host: hostname, port: Number(port), path, headers, method: 'POST', body };
    return bundled({ kind: 'grpc', ...place, connections: GRPC_CONNECTIONS, streams: GRPC_STREAMS, seconds });
  }
  const file = join(mkdtempSync(join(tmpdir(), 'wharf-bench-')), 'message');
  writeFileSync(file, body);
  const lines = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const { stdout } = await run('h2load', [
    ...[`-c${GRPC_CONNECTIONS}`, `-m${GRPC_STREAMS}`, '-t1', `-D${seconds}`],
    ...['-d', file, ...lines, `${url}${path}`],
  ]);
  const perSecond = Number(/([\d.]+) req\/s/.exec(stdout)?.[1]);
  const failed = Number(/(\d+) failed/.exec(stdout)?.[1]);
  if (failed > 0 || !(perSecond > 0)) throw new Error(`calls failed:\n${stdout}`);
  return perSecond;
}

/** A message as gRPC sends it: a flag, its length, and itself. */
function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function bundled(task: GeneratorTask): Promise<number> {
  generator ??= startChild('generator.ts');
  generator.process.unref();
  generator.process.channel?.unref();
  const { requests, failures, seconds } = await generator.ask<GeneratorOutcome>(task);
  if (failures > 0 || requests === 0) throw new Error(`${failures} of ${requests} requests failed`);
  return requests / seconds;
}
