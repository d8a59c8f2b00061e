import assert from 'node:assert/strict';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../cli.testing.ts';
import { readJsonFile, userFile, withFileLock, writeJsonFile } from './private-file.ts';

test('the configuration directory follows the XDG specification', () => {
  const before = process.env.XDG_CONFIG_HOME;
  try {
    process.env.XDG_CONFIG_HOME = '/somewhere';
    assert.equal(userFile('config.json'), '/somewhere/wharf/config.json');
    for (const unset of ['', 'relative/path']) {
      process.env.XDG_CONFIG_HOME = unset;
      assert.equal(userFile('config.json'), join(homedir(), '.config/wharf/config.json'));
    }
  } finally {
    if (before === undefined) delete process.env.XDG_CONFIG_HOME;
    else process.env.XDG_CONFIG_HOME = before;
  }
});

test('only the user can read a written file, and no temporary file remains', async (t) => {
  const path = join(temporaryDirectory(t), 'new', 'wharf', 'file.json');
  assert.equal(await readJsonFile(path), undefined);
  await writeJsonFile(path, { a: 1 });
  await writeJsonFile(path, { a: 2 });
  assert.deepEqual(await readJsonFile(path), { a: 2 });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(dirname(path)), ['file.json']);
});

test('writing removes the permissions of other users', async (t) => {
  const path = join(temporaryDirectory(t), 'file.json');
  writeFileSync(path, '{}', { mode: 0o644 });
  await writeJsonFile(path, {});
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test('an error names the invalid file', async (t) => {
  const path = join(temporaryDirectory(t), 'file.json');
  for (const text of ['', '{', '[]', 'null', '7']) {
    writeFileSync(path, text);
    await assert.rejects(readJsonFile(path), { message: `${path} is not a JSON object: correct or delete it` });
  }
});

test('a lock admits one at a time', async (t) => {
  const path = join(temporaryDirectory(t), 'file.json');
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 8 }, () =>
      withFileLock(path, async () => {
        most = Math.max(most, ++inside);
        await writeJsonFile(path, { inside });
        inside--;
      }),
    ),
  );
  assert.equal(most, 1);
  assert.deepEqual(readdirSync(dirname(path)), ['file.json']);
});

test('a failure releases the lock, and a stale lock is ignored', async (t) => {
  const path = join(temporaryDirectory(t), 'file.json');
  await assert.rejects(
    withFileLock(path, () => Promise.reject(new Error('failed'))),
    /failed/,
  );
  writeFileSync(`${path}.lock`, '');
  const longAgo = new Date(Date.now() - 3_600_000);
  utimesSync(`${path}.lock`, longAgo, longAgo);
  assert.equal(await withFileLock(path, async () => 'done'), 'done');
});
