import assert from 'node:assert/strict';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileOutput, type LogStream, streamOutput } from './log-output.ts';

/** A stream whose reader takes lines only when the test says so. */
function createFixture(maxWaitingBytes: number) {
  const lines: string[] = [];
  const waiting: string[] = [];
  let fail = (_error: Error): void => {};
  const stream: LogStream = {
    get writableLength() {
      return waiting.join('').length;
    },
    write: (line) => waiting.push(line),
    on: (_, listener) => {
      fail = listener;
    },
  };
  const output = streamOutput(stream, maxWaitingBytes);
  const read = (): void => void lines.push(...waiting.splice(0));
  return { output, lines, waiting, read, fail: (error: Error) => fail(error) };
}

test('lines beyond the limit are dropped, and their number is written when there is room again', () => {
  const { output, lines, waiting, read } = createFixture(10);
  output.write('one\n');
  output.write('two\n');
  for (let i = 0; i < 5; i++) output.write('more\n');
  assert.deepEqual(waiting, ['one\n', 'two\n']);
  read();
  output.write('six\n');
  output.write('7\n');
  read();
  const { time, ...report } = JSON.parse(lines[2] ?? '');
  assert.match(time, /^\d{4}-/);
  assert.deepEqual(report, { level: 'warn', dropped: 5, message: 'log lines could not be written' });
  assert.deepEqual([lines[0], lines[1], lines[3]], ['one\n', 'two\n', 'six\n']);
});

test('after an error of the stream nothing is written, and a flush does not wait', async () => {
  const { output, waiting, fail } = createFixture(10);
  output.write('one\n');
  fail(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  output.write('two\n');
  assert.deepEqual(waiting, ['one\n']);
  await output.flush(600_000);
});

test('a flush waits for the reader, but not longer than the timeout', async () => {
  const { output, read } = createFixture(10);
  output.write('one\n');
  await output.flush(1);
  const flushed = output.flush(600_000);
  read();
  await flushed;
});

test('a file gets every line, and a full disk stops nothing', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-log-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'log');
  const file = openSync(path, 'a');
  const output = fileOutput(file);
  output.write('one\n');
  output.write('two\n');
  closeSync(file);
  assert.equal(readFileSync(path, 'utf8'), 'one\ntwo\n');
  if (!existsSync('/dev/full')) return;
  const full = openSync('/dev/full', 'w');
  const fullOutput = fileOutput(full);
  for (let i = 0; i < 3; i++) fullOutput.write('lost\n');
  closeSync(full);
});
