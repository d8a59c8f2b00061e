// Another user puts a settings file where an operator will start a server, for example into /tmp.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, existsSync, lchownSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROGRAM } from '../../../src/cli/built-program.testing.ts';
import { temporaryDirectory } from '../../../src/cli/cli.testing.ts';

const OTHER_USER = 65534;
const isRoot = process.geteuid?.() === 0;

/** Runs a command in a directory and returns its exit code and error. */
function wharfIn(cwd: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: '/nonexistent' };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], { cwd, env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

test('a settings file in the directory that other users can write is refused', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'wharf.yaml');
  writeFileSync(file, 'org: planted\n');
  chmodSync(file, 0o666);
  const { code, stderr } = await wharfIn(directory, 'serve');
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^wharf: the settings file \S+wharf\.yaml cannot be used: other users can write it \(mode 0666\)/,
  );
  assert.equal(existsSync(join(directory, 'data')), false);
});

test('a settings file of another user, or a link of one, is refused', { skip: !isRoot && 'needs root' }, async (t) => {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o1777);
  const file = join(directory, 'wharf.yaml');
  writeFileSync(file, 'data: planted\nmaster_key_file: /etc/hostname\n', { mode: 0o644 });
  chownSync(file, OTHER_USER, OTHER_USER);
  for (const args of [['serve'], ['config', 'show'], ['keys', 'list'], ['auth', 'token']]) {
    const { code, stderr } = await wharfIn(directory, ...args);
    assert.equal(code, 1, args.join(' '));
    assert.match(stderr, /cannot be used: it belongs to another user \(uid 65534\).*name it with --config/);
  }
  // An operator who names the file trusts it.
  assert.match((await wharfIn(directory, 'config', 'show', '--config', file)).stderr, /write 32 bytes/);

  rmSync(file);
  const own = join(directory, 'own.yaml');
  writeFileSync(own, 'org: other-server\n', { mode: 0o600 });
  symlinkSync(own, file);
  lchownSync(file, OTHER_USER, OTHER_USER);
  assert.match((await wharfIn(directory, 'config', 'show')).stderr, /belongs to another user \(uid 65534\)/);
  assert.equal(existsSync(join(directory, 'data')), false);
});
