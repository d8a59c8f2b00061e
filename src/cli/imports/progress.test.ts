import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProgress } from './progress.ts';

/** What is printed while a thousand records a second come in. */
function printed(options: {
  isWatched: boolean;
  isQuiet?: boolean;
  total?: number;
  seconds: readonly number[];
}): string[] {
  const { isWatched, isQuiet = false, total, seconds } = options;
  const lines: string[] = [];
  const terminal = { out: assert.fail, err: (text: string) => void lines.push(text), width: undefined, isWatched };
  const reading = { read: 0, total };
  let now = 0;
  const progress = startProgress({ terminal, isQuiet, what: 'things' }, reading, () => now);
  for (const second of seconds) {
    now = second * 1000;
    reading.read = second * 10;
    progress.tell(second * 1000);
  }
  progress.end();
  return lines;
}

test('people see a bar', () => {
  assert.deepEqual(printed({ isWatched: true, total: 40, seconds: [1, 1.05, 2] }), [
    '[######------------------]  25% 1000 things, 1000/s\x1b[K\r',
    '[############------------]  50% 2000 things, 1000/s\x1b[K\r',
    '\x1b[K',
  ]);
});

test('a log gets a line now and then', () => {
  assert.deepEqual(printed({ isWatched: false, total: 200, seconds: [1, 2, 6, 7, 12] }), [
    '6000 things, 1000/s, 30%\n',
    '12000 things, 1000/s, 60%\n',
  ]);
});

test('where the end is not known, there is no bar', () => {
  assert.deepEqual(printed({ isWatched: true, seconds: [1] }), ['1000 things, 1000/s\x1b[K\r', '\x1b[K']);
});

test('a program gets nothing', () => {
  assert.deepEqual(printed({ isWatched: true, isQuiet: true, seconds: [1, 9] }), []);
});
