import assert from 'node:assert/strict';
import { chmodSync, lchownSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { ConfigError, settings } from './config.ts';
import { parseSettings } from './parse-settings.ts';
import { defaultFileProblem, readSettingsFile } from './settings-file.ts';

const all = Object.values(settings);

function textsOf(text: string): Record<string, string> {
  const values = parseSettings(all, 'wharf.yaml', text);
  return Object.fromEntries([...values].map(([key, value]) => [key, value.text]));
}

function problemOf(text: string): string {
  try {
    parseSettings(all, 'wharf.yaml', text);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    assert.doesNotMatch(error.message, /\n|hunter2/);
    return error.message;
  }
  return assert.fail(`accepted ${JSON.stringify(text)}`);
}

test('values are taken as they are written', () => {
  const text = `# a comment
listen: ":8080"
max-connections: 0755
pull_events: true
allow_private_issuers: on
request_timeout: 1.50s
max_orgs: 1_000
org: 'no'
cors_origins: [https://a.example, "https://b.example"]
trusted_proxies:
  - 10.0.0.0/8
  - 2001:db8::1
public_advisory_groups: []
master_key: |
  abc
database_url:
data: ~
`;
  assert.deepEqual(textsOf(text), {
    listen: ':8080',
    max_connections: '0755',
    pull_events: 'true',
    allow_private_issuers: 'on',
    request_timeout: '1.50s',
    max_orgs: '1_000',
    org: 'no',
    cors_origins: 'https://a.example,https://b.example',
    trusted_proxies: '10.0.0.0/8,2001:db8::1',
    public_advisory_groups: '',
    master_key: 'abc',
  });
  for (const empty of ['', '# nothing\n', '---\n', '{}']) assert.deepEqual(textsOf(empty), {});
});

const anyText = fc
  .array(fc.integer({ min: 1, max: 0x10ffff }), { minLength: 1 })
  .map((points) => String.fromCodePoint(...points))
  .filter((text) => !/[\r\n]/.test(text) && text.isWellFormed());

test('every text survives YAML', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const file = stringify({ org: text }, { defaultStringType: 'QUOTE_DOUBLE', lineWidth: 0 });
      assert.deepEqual(textsOf(file), { org: text });
    }),
    { numRuns: 40 },
  );
});

test('any file is read or refused with one line that contains nothing of its values', () => {
  const line = fc.constantFrom(
    'listen: hunter2',
    '\thunter2',
    '- hunter2',
    'org: [hunter2',
    'org: "hunter2',
    ': hunter2',
  );
  const other = fc.constantFrom(
    'org: *hunter2',
    'org: !hunter2 x',
    'org: "\\hunter2"',
    '---',
    '...',
    '%hunter2',
    'org: {a: b}',
  );
  const texts = fc.array(fc.oneof(line, other, fc.string()), { maxLength: 6 }).map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(texts, (text) => {
      try {
        parseSettings(all, 'wharf.yaml', text);
      } catch (error) {
        assert.ok(error instanceof ConfigError, String(error));
        assert.match(error.message, /^wharf\.yaml:\d+: [^\n]+$/);
        assert.doesNotMatch(error.message, /hunter2/);
      }
    }),
    { numRuns: 500 },
  );
});

test('an error names the file, the line and the key', () => {
  for (const [text, expected] of [
    ['org: a\nlistn: x', 'wharf.yaml:2: "listn" is not a setting: did you mean listen?'],
    ['WHARF_TLS_CERT: x', 'wharf.yaml:1: "WHARF_TLS_CERT" is not a setting: did you mean tls_cert?'],
    ['tlsCert: x', 'wharf.yaml:1: "tlsCert" is not a setting: did you mean tls_cert?'],
    ['nothing-alike-at-all: x', /"nothing-alike-at-all" is not a setting; 'wharf config show'/],
    ['org: a\n\norg: b', 'wharf.yaml:3: org is set in line 1 already: remove one of them'],
    ['tls_key: a\ntls-key: b', 'wharf.yaml:2: tls-key is set in line 1 already: remove one of them'],
    ['listen: [a]', /wharf.yaml:1: listen must be one value/],
    ['listen:\n  host: a', /wharf.yaml:1: listen must be one value/],
    ['cors_origins: {a: b}', /wharf.yaml:1: cors_origins must be a list of values/],
    ['cors_origins: [[a]]', /wharf.yaml:1: cors_origins must be a list of values, such as/],
    ['cors_origins:', 'wharf.yaml:1: cors_origins has no value: write "" for none, or delete the line'],
    ['cors_origins: *', /wharf.yaml:1: aliases are not supported/],
    ['- listen', /wharf.yaml:1: write one setting a line/],
    ['listen', /wharf.yaml:1: write one setting a line/],
    ['org: a\n\tlisten: b', /wharf.yaml:2: indent with spaces/],
    ['org: "hunter2', /wharf.yaml:1: a quote, bracket or comma is missing/],
    ['org: a\n---\norg: b', /wharf.yaml:[23]: the file must have one YAML document/],
    ['master_key: "hunter2" hunter2', /^wharf.yaml:1: this is not valid YAML \(\w+\)$/],
    ['<<: {org: a}', /wharf.yaml:1: "<<" is not a setting/],
    ['? [a]\n: b', /wharf.yaml:1: a key must be the name of a setting/],
  ] as const) {
    const problem = problemOf(text);
    if (typeof expected === 'string') assert.equal(problem, expected);
    else assert.match(problem, expected, JSON.stringify(text));
  }
});

function directoryOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-settings-'));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('a file that other users can write is refused, and one with secrets that they can read causes a warning', async (t) => {
  const path = join(directoryOf(t), 'wharf.yaml');
  writeFileSync(path, 'org: my-org\nmaster_key: hunter2\n');
  for (const [mode, warnings] of [
    [0o600, 0],
    [0o640, 0],
    [0o664, 1],
    [0o644, 1],
  ] as const) {
    chmodSync(path, mode);
    const file = await readSettingsFile(all, path);
    assert.equal(file?.warnings.length, warnings, mode.toString(8));
    assert.doesNotMatch(file?.warnings.join() ?? '', /hunter2/);
  }
  chmodSync(path, 0o666);
  await assert.rejects(
    readSettingsFile(all, path),
    /cannot be used: other users can write it \(mode 0666\).*chmod go-w/,
  );
});

test('a file that was only found must belong to the user or to root', (t) => {
  const directory = directoryOf(t);
  const path = join(directory, 'wharf.yaml');
  const link = join(directory, 'link.yaml');
  writeFileSync(path, '', { mode: 0o644 });
  symlinkSync(path, link);
  // Root can give the file to another user. Otherwise the check is asked for another user.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const name of [path, link]) lchownSync(name, 12345, 12345);
  const { uid, gid } = statSync(path);
  const owner = { user: uid, group: gid };
  assert.equal(defaultFileProblem(path, owner), undefined);
  assert.equal(defaultFileProblem(link, owner), undefined);
  assert.match(defaultFileProblem(path, { ...owner, user: uid + 1 }) ?? '', /belongs to another user .*--config/);
  if (isRoot) {
    lchownSync(path, 0, 0);
    assert.equal(defaultFileProblem(path, owner), undefined);
    assert.match(defaultFileProblem(link, { ...owner, user: 0 }) ?? '', /belongs to another user \(uid 12345\)/);
    lchownSync(path, 12345, 12345);
  }
  chmodSync(path, 0o664);
  assert.equal(defaultFileProblem(path, owner), undefined);
  assert.match(defaultFileProblem(path, { ...owner, group: gid + 1 }) ?? '', /other users can write it/);
});

test('what is not a readable file is refused, except /dev/null, which stands for no file', async (t) => {
  const directory = directoryOf(t);
  const large = join(directory, 'large.yaml');
  writeFileSync(large, `org: ${'x'.repeat(1024 * 1024)}`);
  await assert.rejects(
    readSettingsFile(all, join(directory, 'none.yaml')),
    /none\.yaml cannot be used: the file does not/,
  );
  await assert.rejects(readSettingsFile(all, directory), /cannot be used: it is not a file/);
  await assert.rejects(readSettingsFile(all, large), /cannot be used: the file is larger than 1024 KiB/);
  assert.equal(await readSettingsFile(all, '/dev/null'), undefined);
});
