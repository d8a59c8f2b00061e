import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { scratch } from '../testing.ts';
import { fileNameOf, openDirectory } from './outlet.ts';

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
