import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newOwner, saveOwner } from '../../identity/owner/owner-key.ts';
import { runInProcess, temporaryDirectory } from '../cli.testing.ts';

const key = Buffer.alloc(32, 7).toString('hex');

test('the settings in force are printed with their sources, without secrets', async (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'wharf.yaml');
  const secret = join(directory, 'key');
  writeFileSync(secret, key, { mode: 0o600 });
  writeFileSync(file, `org: from-file\ndatabase_url: postgres://u:hunter2@db/x\nmaster_key_file: key\n`, {
    mode: 0o600,
  });
  const env = { WHARF_LISTEN: ':9000', WHARF_CONFIG: file };
  const { code, stdout, stderr } = await runInProcess(['config', 'show', '--max-orgs', '3'], env);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.ok(stdout.startsWith(`settings file: ${file}\n\nSETTING `), stdout);
  const cells = stdout.split('\n').map((line) => line.split(/ {2,}/));
  const rowOf = (variable: string) => cells.find(([name]) => name === variable)?.slice(1);
  assert.deepEqual(rowOf('WHARF_LISTEN'), [':9000', 'WHARF_LISTEN']);
  assert.deepEqual(rowOf('WHARF_MAX_ORGS'), ['3', '--max-orgs']);
  assert.deepEqual(rowOf('WHARF_ORG'), ['from-file', `${file}:1`]);
  assert.deepEqual(rowOf('WHARF_DATABASE_URL'), ['[redacted]', `${file}:2`]);
  assert.deepEqual(rowOf('WHARF_MASTER_KEY'), ['[redacted]', `${file}:3 (${secret})`]);
  assert.deepEqual(rowOf('WHARF_WORKERS'), ['1', 'default']);
  assert.deepEqual(rowOf('WHARF_TLS_CERT'), ['not set']);

  const json = await runInProcess(['config', 'show', '-o', 'json'], env);
  const shown = JSON.parse(json.stdout) as { file: string; settings: { variable: string }[] };
  assert.equal(shown.file, file);
  assert.deepEqual(
    shown.settings.find(({ variable }) => variable === 'WHARF_DATABASE_URL'),
    { variable: 'WHARF_DATABASE_URL', value: '[redacted]', source: `${file}:2` },
  );
  for (const text of [stdout, json.stdout]) assert.doesNotMatch(text, new RegExp(`hunter2|${key}`));
});

test('an invalid value is printed, and then refused', async () => {
  const { code, stdout, stderr } = await runInProcess(['config', 'show'], {
    WHARF_LISTEN: 'nowhere',
    WHARF_CONFIG: '/dev/null',
  });
  assert.equal(code, 1);
  assert.match(stdout, /^WHARF_LISTEN +nowhere +WHARF_LISTEN$/m);
  assert.match(stderr, /^wharf: WHARF_LISTEN="nowhere" cannot be used: [^\n]+\n$/);
});

test('all commands of the host read the same settings file', async (t) => {
  const directory = temporaryDirectory(t);
  const data = join(directory, 'store');
  const config = join(directory, 'wharf.yaml');
  writeFileSync(config, 'data: store\n');
  mkdirSync(data, { mode: 0o700 });
  for (const args of [
    ['keys', 'list'],
    ['owner', 'recover'],
    ['registry', 'gc'],
  ]) {
    const { code, stderr } = await runInProcess([...args, '--config', config]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^wharf: no (?:database|registry) in ${data}: `), args.join(' '));
    const misspelt = await runInProcess(args, { WHARF_DTA: data });
    assert.match(misspelt.stderr, /^wharf: WHARF_DTA is not a setting: did you mean WHARF_DATA\?/);
  }
  await saveOwner(data, await newOwner());
  const token = await runInProcess(['auth', 'token'], { WHARF_CONFIG: config, WHARF_DTA: 'x' });
  assert.deepEqual({ code: token.code, stderr: token.stderr }, { code: 0, stderr: '' });
});
