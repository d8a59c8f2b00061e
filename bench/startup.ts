/** How long a start takes until the first request is answered, against Node doing nothing but answering one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { v8Flags } from '../src/cli/v8-flags.ts';
import { type Dataset, dataset } from './data.ts';
import { runAlone, type Suite, short } from './lib/result.ts';
import { interleaved } from './lib/rounds.ts';
import { SMALL } from './lib/sizes.ts';

const PROGRAM = join(import.meta.dirname, '../src/cli/wharf.js');
const BARE = `
  const server = require('node:http').createServer((_req, res) => res.end('{}'));
  server.listen(0, '127.0.0.1', () => console.log('serves http://127.0.0.1:' + server.address().port));`;

/** Milliseconds from the start of a process to its first answer. */
async function untilAnswer(args: readonly string[], env: Record<string, string>, path: string): Promise<number> {
  const started = performance.now();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const url = await addressFrom(child);
    await (await fetch(`${url}${path}`)).text();
    return performance.now() - started;
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
}

function addressFrom({ stdout }: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  if (stdout === null) throw new Error('the program has no output');
  createInterface({ input: stdout })
    .on('line', (line) => {
      const found = /serves (\S+)$/.exec(line)?.[1];
      if (found) resolve(found);
    })
    .on('close', () => reject(new Error('it ended before it served')));
  return promise;
}

export const startup: Suite = async (print) => {
  const { dataDir }: Dataset = await dataset(SMALL, print);
  const env = { WHARF_DATA: dataDir, WHARF_LISTEN: '127.0.0.1:0', WHARF_LOG_LEVEL: 'silent' };
  const wharf = () => untilAnswer([...v8Flags, PROGRAM, 'serve'], env, '/healthz');
  await wharf();
  const { ratio, a, b } = await interleaved(7, wharf, () => untilAnswer(['-e', BARE], {}, '/'));
  return [
    {
      benchmark: 'start to first answered request, warm disk',
      baseline: 'bare Node start',
      value: ratio,
      unit: 'times',
      bar: { atMost: 10 },
      figures: `${short(a)} ms against ${short(b)} ms`,
    },
  ];
};

if (import.meta.main) await runAlone(startup);
