import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { changedSettings, findDataDirectory, loadSettings } from './load-settings.ts';

const key = Buffer.alloc(32, 7);
const otherKey = Buffer.alloc(32, 8);

/** Writes files into a new directory and returns a function that makes their paths. */
function filesOf(t: TestContext, files: Record<string, string>): (name: string) => string {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-settings-'));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text, { mode: 0o600 });
  return (name) => join(directory, name);
}

test('a flag overrides its variable, which overrides the file, which overrides the default', async (t) => {
  const path = filesOf(t, { 'wharf.yaml': 'org: from-file\nmax-orgs: 3\ncors_origins: ""\n' });
  const config = path('wharf.yaml');
  const env = { WHARF_ORG: 'from-variable', WHARF_CONFIG: config };
  const orgs = [
    await loadSettings({ org: 'from-flag' }, env),
    await loadSettings({ org: '' }, env),
    await loadSettings({ config }, { WHARF_ORG: '' }),
    await loadSettings({ config: '/dev/null' }, { WHARF_CONFIG: config }),
  ];
  assert.deepEqual(
    orgs.map(({ config: { org }, written, file }) => [org, written.org?.origin, file]),
    [
      ['from-flag', { from: 'flag', flag: '--org' }, config],
      ['from-variable', { from: 'variable', variable: 'WHARF_ORG' }, config],
      ['from-file', { from: 'file', file: config, line: 1, key: 'org' }, config],
      ['my-org', { from: 'default' }, undefined],
    ],
  );
  assert.equal(orgs[0]?.config.maxOrgs, 3);
  assert.deepEqual(orgs[0]?.config.corsOrigins, []);
});

test('an invalid value in the file is named with file, line and key', async (t) => {
  const config = filesOf(t, { 'wharf.yaml': '# first\nlisten: 8080\n' })('wharf.yaml');
  await assert.rejects(loadSettings({ config }, {}), {
    name: 'ConfigError',
    message: `${config}:2: listen="8080" cannot be used: write host:port, such as 127.0.0.1:8080 or [::1]:8080, or :8080 for all interfaces`,
  });
  // A variable overrides it, so it does not matter.
  assert.equal((await loadSettings({ config }, { WHARF_LISTEN: ':1' })).config.listen.port, 1);
});

test('relative paths in the file are relative to its directory', async (t) => {
  const path = filesOf(t, { 'wharf.yaml': 'data: store\nmaster-key-file: key\n', key: `${key.toString('hex')}\n` });
  const { config } = await loadSettings({ config: path('wharf.yaml') }, {});
  assert.equal(config.data, path('store'));
  assert.deepEqual(config.masterKey, key);
});

test('a secret can be in a file, without its line end', async (t) => {
  const path = filesOf(t, {
    'wharf.yaml': `master_key: ${otherKey.toString('hex')}\n`,
    key: `${key.toString('base64')}\r\n\n`,
    url: 'postgres://u:hunter2@db/x\n',
  });
  const env = { WHARF_MASTER_KEY_FILE: path('key'), WHARF_DATABASE_URL_FILE: path('url') };
  const { config, written, warnings } = await loadSettings({ config: path('wharf.yaml') }, env);
  assert.deepEqual(config.masterKey, key);
  assert.equal(config.databaseUrl, 'postgres://u:hunter2@db/x');
  assert.deepEqual(written.masterKey?.origin, {
    from: 'variable',
    variable: 'WHARF_MASTER_KEY_FILE',
    secretFile: path('key'),
  });
  assert.deepEqual(warnings, []);
  assert.deepEqual((await loadSettings({ masterKeyFile: path('key') }, {})).config.masterKey, key);
  // A flag overrides the variable of the file.
  assert.deepEqual((await loadSettings({ masterKey: otherKey.toString('hex') }, env)).config.masterKey, otherKey);
  // An empty variable counts as unset.
  const unset = { WHARF_MASTER_KEY: otherKey.toString('hex'), WHARF_MASTER_KEY_FILE: '' };
  assert.deepEqual((await loadSettings({}, unset)).config.masterKey, otherKey);

  chmodSync(path('key'), 0o644);
  const [warning = '', ...others] = (await loadSettings({}, env)).warnings;
  assert.match(warning, /^other users can read the secret in .*\/key: run chmod 0600/);
  assert.deepEqual(others, []);
});

test('errors about files of secrets name the file and never its content', async (t) => {
  const path = filesOf(t, {
    key: 'hunter2\n',
    empty: '\n',
    large: 'hunter2'.repeat(10_000),
    'both.yaml': 'master_key: hunter2\nmaster_key_file: key\n',
    'one.yaml': 'master_key_file: key\n',
  });
  mkdirSync(path('directory'));
  for (const [env, expected] of [
    [{ WHARF_MASTER_KEY_FILE: path('key') }, /^WHARF_MASTER_KEY_FILE=".*\/key" cannot be used: write 32 bytes/],
    [{ WHARF_MASTER_KEY_FILE: path('empty') }, /\/empty" cannot be used: the file is empty$/],
    [{ WHARF_MASTER_KEY_FILE: path('none') }, /\/none" cannot be used: the file does not exist$/],
    [{ WHARF_MASTER_KEY_FILE: path('large') }, /\/large" cannot be used: the file is larger than 64 KiB$/],
    [{ WHARF_MASTER_KEY_FILE: path('directory') }, /\/directory" cannot be used: it is not a file$/],
    [{ WHARF_DATABASE_URL_FILE: path('key') }, /^WHARF_DATABASE_URL_FILE=".*\/key" cannot be used: write postgres:/],
    [
      { WHARF_MASTER_KEY_OLD: 'hunter2', WHARF_MASTER_KEY_OLD_FILE: path('key') },
      /^WHARF_MASTER_KEY_OLD and WHARF_MASTER_KEY_OLD_FILE are both set: remove one of them$/,
    ],
    [{ WHARF_CONFIG: path('both.yaml') }, /both\.yaml:1: master_key and .*both\.yaml:2: master_key_file are both set/],
    [{ WHARF_CONFIG: path('one.yaml') }, /one\.yaml:1: master_key_file=".*\/key" cannot be used: write 32 bytes/],
  ] as const) {
    await assert.rejects(loadSettings({}, env), (error: Error) => {
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /hunter2/);
      return error.name === 'ConfigError';
    });
  }
});

test('a misspelt variable is refused', async () => {
  await assert.rejects(
    loadSettings({}, { WHARF_LISTN: ':1' }),
    /WHARF_LISTN is not a setting: did you mean WHARF_LISTEN\?/,
  );
});

test('reloading shows which settings have changed', async (t) => {
  const path = filesOf(t, { 'wharf.yaml': 'log_level: info\nmaster_key_file: key\n', key: key.toString('hex') });
  const flags = { config: path('wharf.yaml') };
  const before = await loadSettings(flags, {});
  assert.deepEqual(changedSettings(before.written, (await loadSettings(flags, {})).written), []);
  writeFileSync(path('wharf.yaml'), 'org: other\nlog_level: debug\nmaster_key_file: key\nlisten: 127.0.0.1:8080\n');
  writeFileSync(path('key'), otherKey.toString('hex'));
  const after = await loadSettings(flags, {});
  assert.deepEqual(changedSettings(before.written, after.written), ['logLevel', 'masterKey', 'org']);
});

test('the data directory is found without the other settings', async (t) => {
  const path = filesOf(t, { 'wharf.yaml': 'data: store\nlisten: nonsense\n', 'wrong.yaml': 'dta: x' });
  assert.equal(await findDataDirectory(undefined, { WHARF_CONFIG: path('wharf.yaml') }), path('store'));
  assert.equal(await findDataDirectory('/srv', { WHARF_CONFIG: path('wrong.yaml'), WHARF_DATA: '/x' }), '/srv');
  assert.equal(await findDataDirectory(undefined, { WHARF_CONFIG: path('wrong.yaml'), WHARF_DATA: '/x' }), '/x');
  await assert.rejects(findDataDirectory(undefined, { WHARF_CONFIG: path('wrong.yaml') }), /did you mean data\?/);
});
