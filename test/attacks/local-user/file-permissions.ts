import assert from 'node:assert/strict';
import { chmodSync, chownSync, existsSync, lchownSync, readdirSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '../../../src/base/log.ts';
import { wharf } from '../../../src/cli/cli.testing.ts';
import { type DataLocation, databases, findDatabase } from '../../support/databases.ts';
import { startServerOn } from '../../support/server.ts';

const OTHER_USER = 65534;
const isRoot = process.geteuid?.() === 0;
const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

/** Starts and stops a server, and returns the warnings in its log. */
async function startAndStop(location: DataLocation): Promise<string[]> {
  const lines: string[] = [];
  const log = createLogger({ level: 'warn', destination: { write: (line) => lines.push(line) } });
  await (await startServerOn(location, { log })).stop();
  return lines.map((line) => JSON.parse(line).message as string);
}

for (const database of databases) {
  describe(`files that other users can read or write, on ${database.name}`, () => {
    let location: DataLocation;
    let pathOf: (name: string) => string;
    before(async () => {
      location = await database.createDataLocation();
      pathOf = (name) => join(location.dataDir, name);
      assert.deepEqual(await startAndStop(location), [], 'files that the server creates are private');
    });
    after(() => location.remove());

    test('the mode of a file that other users can read is changed, and the log says so', async () => {
      // Other users can enter the directory, as in one that mkdir created.
      chmodSync(location.dataDir, 0o755);
      const files = ['owner.json', 'master.key', 'wharfinger.db'].map(pathOf).filter(existsSync);
      assert.ok(files.length >= 2);
      for (const file of files) chmodSync(file, 0o644);
      chmodSync(pathOf('registry'), 0o755);
      const warnings = await startAndStop(location);
      for (const file of files) {
        assert.equal(modeOf(file), '600');
        const expected = `${file} could be read by other users (mode 0644): changed to 0600`;
        assert.ok(
          warnings.some((line) => line.startsWith(expected)),
          warnings.join('\n'),
        );
      }
      assert.equal(modeOf(pathOf('registry')), '700');
    });

    test('a data directory that other users can write is refused', async () => {
      for (const mode of [0o777, 0o757, 0o1777]) {
        chmodSync(location.dataDir, mode);
        await assert.rejects(startAndStop(location), /can be written by other users .*run chmod 0700 .*WHARF_DATA/);
      }
      chmodSync(location.dataDir, 0o700);
    });

    test('a key that other users can write is refused', async () => {
      chmodSync(location.dataDir, 0o755);
      for (const file of ['owner.json', 'master.key'].map(pathOf)) {
        chmodSync(file, 0o666);
        await assert.rejects(startAndStop(location), /can be written by other users \(mode 0666\).*run chmod 0600/);
        chmodSync(file, 0o600);
      }
      chmodSync(location.dataDir, 0o700);
    });

    const skip = isRoot ? false : 'only root can create files of another user';
    test('a key that another user has put in place is refused', { skip }, async () => {
      for (const file of ['owner.json', 'master.key'].map(pathOf)) {
        chownSync(file, OTHER_USER, OTHER_USER);
        await assert.rejects(startAndStop(location), /belongs to another user \(uid 65534\)/);
        chownSync(file, 0, 0);
      }
    });

    test('a link of another user is refused, and a link of the operator works', { skip }, async () => {
      const file = pathOf('master.key');
      const moved = pathOf('moved.key');
      renameSync(file, moved);
      symlinkSync(moved, file);
      lchownSync(file, OTHER_USER, OTHER_USER);
      await assert.rejects(startAndStop(location), /is a link that belongs to another user/);
      lchownSync(file, 0, 0);
      assert.deepEqual(await startAndStop(location), []);
      renameSync(moved, file);
    });

    test('a directory that is shared with a group works unchanged, as in Kubernetes', async () => {
      chmodSync(location.dataDir, 0o2770);
      for (const path of readdirSync(location.dataDir).map(pathOf)) {
        chmodSync(path, statSync(path).isDirectory() ? 0o2770 : 0o660);
        if (isRoot) chownSync(path, OTHER_USER, 0);
      }
      assert.deepEqual(await startAndStop(location), []);
      assert.equal(modeOf(pathOf('owner.json')), '660');
    });
  });
}

test('an empty directory that other users can write is made private', async (t) => {
  const location = await findDatabase('SQLite').createDataLocation();
  t.after(() => location.remove());
  chmodSync(location.dataDir, 0o777);
  const warnings = await startAndStop(location);
  assert.match(warnings.join('\n'), /was empty: changed to 0700/);
  assert.equal(modeOf(location.dataDir), '700');
});

test('commands that read the data directory apply the same rules', async (t) => {
  const location = await findDatabase('SQLite').createDataLocation();
  t.after(() => location.remove());
  await startAndStop(location);
  const owner = join(location.dataDir, 'owner.json');
  chmodSync(owner, 0o644);
  const token = await wharf(['auth', 'token', '--data', location.dataDir]);
  assert.equal(token.code, 0);
  assert.match(token.stdout, /^eyJ[\w.-]+\n$/);
  assert.match(token.stderr, /owner\.json could be read by other users \(mode 0644\): changed to 0600/);
  assert.equal(modeOf(owner), '600');
  chmodSync(location.dataDir, 0o777);
  for (const command of [
    ['auth', 'token'],
    ['keys', 'list'],
    ['registry', 'gc', '--dry-run'],
  ]) {
    const { code, stdout, stderr } = await wharf([...command, '--data', location.dataDir]);
    assert.equal(code, 1, command.join(' '));
    assert.equal(stdout, '');
    assert.match(stderr, /^wharf: the data directory .* can be written by other users \(mode 0777\)[^\n]*\n$/);
  }
});
