import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProgress } from './progress.ts';

/** What is printed while a thousand records a second come in. */
function printed(options: {
  isInteractive: boolean;
  isQuiet?: boolean;
  total?: number;
  seconds: readonly number[];
}): string[] {
  const { isInteractive, isQuiet = false, total, seconds } = options;
  const lines: string[] = [];
  const terminal = { out: assert.fail, err: (text: string) => void lines.push(text), width: undefined, isInteractive };
  const readProgress = { read: 0, total };
  let now = 0;
  const progress = startProgress({ terminal, isQuiet, what: 'things' }, readProgress, () => now);
  for (const second of seconds) {
    now = second * 1000;
    readProgress.read = second * 10;
    progress.update(second * 1000);
  }
  progress.end();
  return lines;
}

test('a terminal shows a bar', () => {
  assert.deepEqual(printed({ isInteractive: true, total: 40, seconds: [1, 1.05, 2] }), [
    '[######------------------]  25% 1000 things, 1000/s\x1b[K\r',
    '[############------------]  50% 2000 things, 1000/s\x1b[K\r',
    '\x1b[K',
  ]);
});

test('a log gets a line every few seconds', () => {
  assert.deepEqual(printed({ isInteractive: false, total: 200, seconds: [1, 2, 6, 7, 12] }), [
    '6000 things, 1000/s, 30%\n',
    '12000 things, 1000/s, 60%\n',
  ]);
});

test('without a total there is no bar', () => {
  assert.deepEqual(printed({ isInteractive: true, seconds: [1] }), ['1000 things, 1000/s\x1b[K\r', '\x1b[K']);
});

test('quiet mode prints nothing', () => {
  assert.deepEqual(printed({ isInteractive: true, isQuiet: true, seconds: [1, 9] }), []);
});
