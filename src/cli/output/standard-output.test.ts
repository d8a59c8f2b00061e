import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROGRAM } from '../built-program.testing.ts';
import { temporaryDirectory } from '../cli.testing.ts';

/** Runs a line of shell in which `wharf` is the real program. */
function shell(line: string, cwd: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const program = `wharf() { "${process.execPath}" "${PROGRAM}" "$@"; }`;
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: '/nonexistent', WHARF_CONFIG: '/dev/null' };
  return new Promise((resolve) => {
    execFile(
      'bash',
      ['--norc', '-o', 'pipefail', '-c', `${program}\n${line}`],
      { cwd, env },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      },
    );
  });
}

test('a command whose output cannot be written fails', async (t) => {
  const directory = temporaryDirectory(t);
  for (const command of ['--help', '--version', 'config show', 'config show -o json', 'iam groups list --help']) {
    const { code, stderr } = await shell(`wharf ${command} > /dev/full`, directory);
    assert.equal(code, 1, command);
    assert.match(stderr, /^wharf: cannot write the output: ENOSPC[^\n]*\n$/, command);
  }
  // The code of another failure stays.
  assert.equal((await shell('wharf sreve > /dev/full', directory)).code, 2);
});

test('output of which the disk takes only a part fails too', async (t) => {
  const directory = temporaryDirectory(t);
  // The limit of a file's size, 4 KiB, acts as a full disk does: the first write is cut short and reports no error.
  const { code, stderr } = await shell('trap "" XFSZ; ulimit -f 4; wharf serve --help > help.txt', directory);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /^wharf: cannot write the output: EFBIG[^\n]*\n$/);
  assert.equal(readFileSync(join(directory, 'help.txt')).length, 4096);
});

test('output goes into files, into /dev/null and to readers that leave early', async (t) => {
  const directory = temporaryDirectory(t);
  const piped = await shell('wharf serve --help | cat', directory);
  assert.equal((await shell('wharf serve --help > whole.txt', directory)).code, 0);
  assert.equal(readFileSync(join(directory, 'whole.txt'), 'utf8'), piped.stdout);
  assert.equal((await shell('wharf --version > /dev/null', directory)).code, 0);
  mkdirSync(join(directory, 'appended'));
  await shell('cd appended; { echo first; wharf --version; echo last; } > file', directory);
  assert.match(readFileSync(join(directory, 'appended/file'), 'utf8'), /^first\n\d+\.\d+\.\d+\S*\nlast\n$/);
  const early = await shell('wharf serve --help | head -1', directory);
  assert.deepEqual(early, { code: 0, stdout: 'Usage: wharf serve [options]\n', stderr: '' });
});
