/** The time from the start of the server to its first response, compared with a plain node:http server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { v8Flags } from '../src/cli/v8-flags.ts';
import { type Dataset, ensureDataset } from './data.ts';
import { compareInTurn } from './lib/compare.ts';
import { formatFigure, runSuite, type Suite } from './lib/result.ts';
import { SMALL } from './lib/sizes.ts';

const PROGRAM = join(import.meta.dirname, '../dist/wharf.js');
const BASELINE = `
  const server = require('node:http').createServer((_req, res) => res.end('{}'));
  server.listen(0, '127.0.0.1', () => console.log('serves http://127.0.0.1:' + server.address().port));`;

/** Returns the milliseconds from the start of a process to its first response. */
async function timeToFirstResponse(
  args: readonly string[],
  env: Record<string, string>,
  path: string,
): Promise<number> {
  const started = performance.now();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const url = await urlFrom(child);
    await (await fetch(`${url}${path}`)).text();
    return performance.now() - started;
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
}

function urlFrom({ stdout }: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  if (stdout === null) throw new Error('the program has no output');
  createInterface({ input: stdout })
    .on('line', (line) => {
      const found = /serves (\S+)$/.exec(line)?.[1];
      if (found) resolve(found);
    })
    .on('close', () => reject(new Error('the program exited before it listened')));
  return promise;
}

export const startup: Suite = async (print) => {
  const { dataDir }: Dataset = await ensureDataset(SMALL, print);
  const env = { WHARF_DATA: dataDir, WHARF_LISTEN: '127.0.0.1:0', WHARF_LOG_LEVEL: 'silent' };
  const wharf = () => timeToFirstResponse([...v8Flags, PROGRAM, 'serve'], env, '/healthz');
  await wharf();
  const { ratio, a, b } = await compareInTurn(7, wharf, () => timeToFirstResponse(['-e', BASELINE], {}, '/'));
  return [
    {
      benchmark: 'start to first response, warm disk',
      baseline: 'plain node:http server',
      value: ratio,
      unit: 'times',
      limit: { atMost: 6 },
      figures: `${formatFigure(a)} ms against ${formatFigure(b)} ms`,
    },
  ];
};

if (import.meta.main) await runSuite(startup);
