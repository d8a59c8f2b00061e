import assert from 'node:assert/strict';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { scratch } from '../cli.testing.ts';
import { locked, readObject, userFile, writeObject } from './private-file.ts';

test('files of a user lie where the XDG specification says', () => {
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

test('what is written is readable by its user alone, and nothing else is left', async (t) => {
  const path = join(scratch(t), 'new', 'wharf', 'file.json');
  assert.equal(await readObject(path), undefined);
  await writeObject(path, { a: 1 });
  await writeObject(path, { a: 2 });
  assert.deepEqual(await readObject(path), { a: 2 });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
  assert.deepEqual(readdirSync(dirname(path)), ['file.json']);
});

test('a file that was open to others is so no longer', async (t) => {
  const path = join(scratch(t), 'file.json');
  writeFileSync(path, '{}', { mode: 0o644 });
  await writeObject(path, {});
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test('a broken file is named', async (t) => {
  const path = join(scratch(t), 'file.json');
  for (const text of ['', '{', '[]', 'null', '7']) {
    writeFileSync(path, text);
    await assert.rejects(readObject(path), { message: `${path} is not a JSON object: mend or delete it` });
  }
});

test('one at a time works on a locked file', async (t) => {
  const path = join(scratch(t), 'file.json');
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 8 }, () =>
      locked(path, async () => {
        most = Math.max(most, ++inside);
        await writeObject(path, { inside });
        inside--;
      }),
    ),
  );
  assert.equal(most, 1);
  assert.deepEqual(readdirSync(dirname(path)), ['file.json']);
});

test('a failure frees the lock, and so does the end of a program that was killed', async (t) => {
  const path = join(scratch(t), 'file.json');
  await assert.rejects(
    locked(path, () => Promise.reject(new Error('failed'))),
    /failed/,
  );
  writeFileSync(`${path}.lock`, '');
  const longAgo = new Date(Date.now() - 3_600_000);
  utimesSync(`${path}.lock`, longAgo, longAgo);
  assert.equal(await locked(path, async () => 'done'), 'done');
});
