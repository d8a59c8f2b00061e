import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '../../base/log.ts';
import { superviseWorkers, type Worker } from './supervisor.ts';

interface FakeWorker extends Worker<string> {
  start(): void;
  fail(reason: string): void;
  end(how: string): void;
  /** Makes the worker ignore `stop`. */
  block(): void;
  readonly stops: () => number;
}

/** A supervisor of workers that the test starts, fails and ends. */
function createFixture(count: number) {
  const workers: FakeWorker[] = [];
  const pauses: number[] = [];
  const lines: string[] = [];
  let now = 0;
  function fork(): FakeWorker {
    const started = Promise.withResolvers<string>();
    const ended = Promise.withResolvers<string>();
    let stops = 0;
    let isBlocked = false;
    const worker: FakeWorker = {
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
        if (!isBlocked) ended.resolve('exit code 0');
      },
      block: () => {
        isBlocked = true;
      },
      kill: () => ended.resolve('SIGKILL'),
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
    stopLimitMs: 28_000,
    pause: async (ms) => pauses.push(ms),
  });
  return { supervisor, workers, pauses, lines, advance: (ms: number) => (now += ms) };
}

test('the other workers start when the first serves', async () => {
  const { supervisor, workers } = createFixture(3);
  await turn();
  assert.equal(workers.length, 1);
  workers[0]?.start();
  assert.equal((await supervisor).started, 'worker 0');
  assert.equal(workers.length, 3);
});

test('the supervisor fails with the reason of the first worker', async () => {
  const { supervisor, workers } = createFixture(2);
  workers[0]?.fail('the port is taken');
  await assert.rejects(supervisor, /^Error: the port is taken$/);
  assert.equal(workers.length, 1);
});

test('a worker that ends is replaced, with backoff until one is stable', async () => {
  const { supervisor, workers, pauses, lines, advance } = createFixture(1);
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
  advance(61_000);
  workers[2]?.end('SIGSEGV');
  await turn();
  assert.deepEqual(pauses, [100, 200, 100]);
  for (let i = 3; i < 20; i++) {
    workers[i]?.end('exit code 1');
    await turn();
  }
  assert.equal(pauses.at(-1), 30_000);
});

test('a stop ends every worker and starts no other', async () => {
  const { supervisor, workers } = createFixture(2);
  workers[0]?.start();
  const { stop } = await supervisor;
  workers[1]?.start();
  await stop();
  assert.deepEqual(
    workers.map(({ stops }) => stops()),
    [1, 1],
  );
});

test('a worker that does not stop in time is killed', async () => {
  const { supervisor, workers, pauses, lines } = createFixture(2);
  workers[0]?.start();
  const { stop } = await supervisor;
  workers[1]?.block();
  await stop();
  assert.deepEqual(pauses, [28_000]);
  assert.match(lines.at(-1) ?? '', /"pid":1,.*could not stop in time/);
});
