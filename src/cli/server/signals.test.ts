import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLogger } from '../../base/log.ts';
import { stopOnSignals } from './signals.ts';

function createFixture() {
  const stopping = Promise.withResolvers<void>();
  const exits: number[] = [];
  const lines: string[] = [];
  let stops = 0;
  let limits = 0;
  let now = 0;
  const process = Object.assign(new EventEmitter(), { exit: (code: number) => void exits.push(code) });
  stopOnSignals({
    stop: () => {
      stops++;
      return stopping.promise;
    },
    log: createLogger({ level: 'info', destination: { write: (line) => lines.push(line) } }),
    limitStop: () => void limits++,
    clock: () => now,
    process,
  });
  const signal = (name: string, at: number): void => {
    now = at;
    process.emit(name);
  };
  return { signal, stopping, exits, lines, stops: () => stops, limits: () => limits };
}

test('the first signal stops gracefully and exits when that is done', async () => {
  const { signal, stopping, exits, stops, limits } = createFixture();
  signal('SIGTERM', 0);
  await turn();
  assert.deepEqual([stops(), limits(), exits], [1, 1, []]);
  stopping.resolve();
  await turn();
  assert.deepEqual(exits, [0]);
});

test('a second signal exits immediately, but not a duplicate of the first', () => {
  const { signal, exits, stops } = createFixture();
  signal('SIGINT', 0);
  signal('SIGINT', 20);
  assert.deepEqual(exits, []);
  signal('SIGINT', 2000);
  assert.deepEqual(exits, [130]);
  signal('SIGTERM', 2001);
  assert.deepEqual(exits, [130, 143]);
  assert.equal(stops(), 1);
});

test('a failed stop is logged and has exit code 1', async () => {
  const { signal, stopping, exits, lines } = createFixture();
  signal('SIGTERM', 0);
  stopping.reject(new Error('database is locked'));
  await turn();
  assert.deepEqual(exits, [1]);
  assert.match(lines.at(-1) ?? '', /could not stop cleanly/);
});
