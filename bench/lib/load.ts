import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type ChildProgram, startChildProgram } from './child-program.ts';
import type { LoadOutcome, LoadTask } from './load-generator.ts';

const run = promisify(execFile);

export interface LoadTarget {
  readonly url: string;
  readonly path: string;
  /** Requested in turn with `path`. */
  readonly morePaths?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. If set, requests are POST, otherwise GET. */
  readonly body?: string;
  /** Of the same length, sent in turn with `body`. */
  readonly moreBodies?: readonly string[];
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

let generator: ChildProgram | undefined;

/** The load generators that are used on this machine. */
export const describeLoadGenerators = (): string =>
  [hasWrk ? 'wrk' : 'bundled (HTTP)', hasH2load ? 'h2load' : 'bundled (gRPC)'].join(', ');

/** Sends requests for some seconds, one at a time per connection. Returns successful requests per second. */
export async function httpLoad(
  target: LoadTarget,
  { seconds, connections = CONNECTIONS }: LoadOptions,
): Promise<number> {
  const { url, path, morePaths = [], headers = {}, body = '', moreBodies = [] } = target;
  const allHeaders = { ...headers, ...(body !== '' && { 'content-type': 'application/json' }) };
  if (!hasWrk) {
    const { hostname, port } = new URL(url);
    return runBundledGenerator({
      kind: 'http',
      host: hostname,
      port: Number(port),
      path,
      morePaths,
      headers: allHeaders,
      method: body === '' ? 'GET' : 'POST',
      body: Buffer.from(body),
      moreBodies: moreBodies.map((each) => Buffer.from(each)),
      connections,
      streams: 1,
      until: { seconds },
    });
  }
  const script = wrkScript(target);
  const headerArguments = Object.entries(allHeaders).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const { stdout } = await run('wrk', [
    ...['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '30s'],
    ...[...(script === '' ? [] : ['-s', scriptFile(script)]), ...headerArguments, `${url}${path}`],
  ]);
  const perSecond = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  // Zero is valid: on a very busy machine no request may finish within a second.
  if (/Non-2xx|Socket errors/.test(stdout) || !(perSecond >= 0)) throw new Error(`requests failed:\n${stdout}`);
  return perSecond;
}

/** The script that wrk needs for a POST body or several paths. Empty if it needs none. */
function wrkScript({ path, morePaths = [], body = '', moreBodies = [] }: LoadTarget): string {
  const post = body === '' ? '' : `wrk.method = "POST"\nwrk.body = [==[${body}]==]\n`;
  if (morePaths.length === 0 && moreBodies.length === 0) return post;
  const requests = [path, ...morePaths].flatMap((each) =>
    [body, ...moreBodies].map((content) => `wrk.format(nil, "${each}", nil, [==[${content}]==])`),
  );
  // The requests are formatted once, before the load starts.
  return `${post}local all, n
init = function() all, n = { ${requests.join(', ')} }, 0 end
request = function() n = n % #all + 1; return all[n] end\n`;
}

const scriptFiles = new Map<string, string>();

function scriptFile(script: string): string {
  let file = scriptFiles.get(script);
  if (file === undefined) {
    file = join(mkdtempSync(join(tmpdir(), 'wharf-bench-')), 'wrk.lua');
    writeFileSync(file, script);
    scriptFiles.set(script, file);
  }
  return file;
}

/** Calls a gRPC method with one message for some seconds. Returns calls per second. */
export async function grpcLoad(
  target: Omit<LoadTarget, 'body'>,
  message: Uint8Array,
  seconds: number,
): Promise<number> {
  const { url, path } = target;
  const headers = { 'content-type': 'application/grpc', te: 'trailers', ...target.headers };
  const body = frame(message);
  if (!hasH2load) {
    const { hostname, port } = new URL(url);
    const request = { host: hostname, port: Number(port), path, headers, method: 'POST', body };
    return runBundledGenerator({
      kind: 'grpc',
      ...request,
      connections: GRPC_CONNECTIONS,
      streams: GRPC_STREAMS,
      until: { seconds },
    });
  }
  const file = join(mkdtempSync(join(tmpdir(), 'wharf-bench-')), 'message');
  writeFileSync(file, body);
  const headerArguments = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const { stdout } = await run('h2load', [
    ...[`-c${GRPC_CONNECTIONS}`, `-m${GRPC_STREAMS}`, '-t1', `-D${seconds}`],
    ...['-d', file, ...headerArguments, `${url}${path}`],
  ]);
  const perSecond = Number(/([\d.]+) req\/s/.exec(stdout)?.[1]);
  const failed = Number(/(\d+) failed/.exec(stdout)?.[1]);
  if (failed > 0 || !(perSecond > 0)) throw new Error(`calls failed:\n${stdout}`);
  return perSecond;
}

/** The gRPC framing of a message: a flag, the length, and the message. */
function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function runBundledGenerator(task: LoadTask): Promise<number> {
  generator ??= startChildProgram('load-generator.ts');
  generator.process.unref();
  generator.process.channel?.unref();
  const { requests, failures, seconds } = await generator.request<LoadOutcome>(task);
  if (failures > 0 || requests === 0) throw new Error(`${failures} of ${requests} requests failed`);
  return requests / seconds;
}
