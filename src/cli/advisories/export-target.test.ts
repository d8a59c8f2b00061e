import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../cli.testing.ts';
import { fileNameOf, openDirectoryTarget, openLinesTarget } from './export-target.ts';

test('each package has its own file inside of the directory', async (t) => {
  const directory = join(temporaryDirectory(t), 'new', 'place');
  const names = [
    'curl',
    'example.com/a',
    '..',
    '.hidden',
    '../../up',
    'a\0b',
    'long'.repeat(100),
    `${'long'.repeat(100)}er`,
  ];
  const target = await openDirectoryTarget(directory);
  for (const name of names) await target.write(name, '.yaml', name);
  assert.equal(target.files, names.length);
  const files = readdirSync(directory);
  assert.deepEqual(
    files.map((file) => readFileSync(join(directory, file), 'utf8')).sort(),
    names.map((name) => `${name}\n`).sort(),
  );
  assert.ok(
    files.every((file) => !file.startsWith('.') && file.length < 255),
    files.join(' '),
  );
});

test('the file name is the encoded package name', () => {
  assert.equal(fileNameOf('golang.org/x/net'), 'golang.org%2Fx%2Fnet');
  assert.equal(fileNameOf('@scope/pad'), '%40scope%2Fpad');
});

const noTerminal = { out() {}, err() {}, width: undefined, isInteractive: false };

test('lines go to a file', async (t) => {
  const path = join(temporaryDirectory(t), 'all.jsonl');
  const target = await openLinesTarget(path, noTerminal);
  for (const text of ['1', '2']) await target.write('curl', '', text);
  await target.close();
  assert.equal(readFileSync(path, 'utf8'), '1\n2\n');
});

const FULL = '/dev/full';

test('a full disk is an error, even between two writes', {
  skip: !existsSync(FULL) && 'Linux only',
}, async () => {
  const target = await openLinesTarget(FULL, noTerminal);
  const exported = async (): Promise<void> => {
    for (let n = 0; n < 10_000; n++) {
      await target.write('curl', '', 'x'.repeat(100));
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    await target.close();
  };
  await assert.rejects(exported(), { code: 'ENOSPC' });
});
