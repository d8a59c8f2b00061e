import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '../../base/log.ts';
import { superviseWorkers, type Worker } from './workers.ts';

interface Fake extends Worker<string> {
  start(): void;
  fail(reason: string): void;
  end(how: string): void;
  readonly stops: () => number;
}

/** A supervisor of workers that start, fail and end when the test says so. */
function watched(count: number) {
  const workers: Fake[] = [];
  const pauses: number[] = [];
  const lines: string[] = [];
  let now = 0;
  function fork(): Fake {
    const started = Promise.withResolvers<string>();
    const ended = Promise.withResolvers<string>();
    let stops = 0;
    const worker: Fake = {
      pid: workers.length,
      started: started.promise,
      ended: ended.promise,
      start: () => started.resolve(`worker ${worker.pid}`),
      fail(reason) {
        started.reject(new Error(reason));
        ended.resolve('exit code 1');
      },
      end: (how) => ended.resolve(how),
      stop: () => {
        stops++;
        ended.resolve('exit code 0');
      },
      stops: () => stops,
    };
    workers.push(worker);
    return worker;
  }
  const supervisor = superviseWorkers({
    count,
    fork,
    log: createLogger({ level: 'info', destination: { write: (line) => lines.push(line) } }),
    clock: () => now,
    pause: async (ms) => pauses.push(ms),
  });
  return { supervisor, workers, pauses, lines, pass: (ms: number) => (now += ms) };
}

test('the first worker starts alone, and the others when it serves', async () => {
  const { supervisor, workers } = watched(3);
  await turn();
  assert.equal(workers.length, 1);
  workers[0]?.start();
  assert.equal((await supervisor).started, 'worker 0');
  assert.equal(workers.length, 3);
});

test('when the first cannot start, its reason is the answer', async () => {
  const { supervisor, workers } = watched(2);
  workers[0]?.fail('the port is taken');
  await assert.rejects(supervisor, /^Error: the port is taken$/);
  assert.equal(workers.length, 1);
});

test('a worker that ends is replaced, ever more slowly until one lasts', async () => {
  const { supervisor, workers, pauses, lines, pass } = watched(1);
  workers[0]?.start();
  await supervisor;
  workers[0]?.end('SIGKILL');
  await turn();
  workers[1]?.fail('no database');
  await turn();
  workers[2]?.start();
  await turn();
  assert.deepEqual(pauses, [100, 200]);
  assert.match(lines.find((line) => line.includes('SIGKILL')) ?? '', /worker ended; starting another/);
  pass(61_000);
  workers[2]?.end('SIGSEGV');
  await turn();
  assert.deepEqual(pauses, [100, 200, 100]);
  for (let i = 3; i < 20; i++) {
    workers[i]?.end('exit code 1');
    await turn();
  }
  assert.equal(pauses.at(-1), 30_000);
});

test('stopping stops every worker and starts none again', async () => {
  const { supervisor, workers } = watched(2);
  workers[0]?.start();
  const { stop } = await supervisor;
  workers[1]?.start();
  await stop();
  assert.deepEqual(
    workers.map(({ stops }) => stops()),
    [1, 1],
  );
});
