import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratch } from '../cli.testing.ts';
import { fileNameOf, openDirectory, openLines } from './export-target.ts';

test('every package has a file of its own, inside of the directory', async (t) => {
  const directory = join(scratch(t), 'new', 'place');
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
  const outlet = await openDirectory(directory);
  for (const name of names) await outlet.write(name, '.yaml', name);
  assert.equal(outlet.files, names.length);
  const found = readdirSync(directory);
  assert.deepEqual(
    found.map((file) => readFileSync(join(directory, file), 'utf8')).sort(),
    names.map((name) => `${name}\n`).sort(),
  );
  assert.ok(
    found.every((file) => !file.startsWith('.') && file.length < 255),
    found.join(' '),
  );
});

test('the name of a file tells the package', () => {
  assert.equal(fileNameOf('golang.org/x/net'), 'golang.org%2Fx%2Fnet');
  assert.equal(fileNameOf('@scope/pad'), '%40scope%2Fpad');
});

const nowhere = { out() {}, err() {}, width: undefined, isWatched: false };

test('lines go to a file', async (t) => {
  const path = join(scratch(t), 'all.jsonl');
  const outlet = await openLines(path, nowhere);
  for (const text of ['1', '2']) await outlet.write('curl', '', text);
  await outlet.close();
  assert.equal(readFileSync(path, 'utf8'), '1\n2\n');
});

const FULL = '/dev/full';

test('a full disk is an error of the export, whenever it shows', {
  skip: !existsSync(FULL) && 'Linux only',
}, async () => {
  const outlet = await openLines(FULL, nowhere);
  const exported = async (): Promise<void> => {
    for (let n = 0; n < 10_000; n++) {
      await outlet.write('curl', '', 'x'.repeat(100));
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    await outlet.close();
  };
  await assert.rejects(exported(), { code: 'ENOSPC' });
});
