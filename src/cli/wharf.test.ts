import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { version } from '../base/version.ts';
import { settings } from '../config.ts';
import { newOwner, saveOwner } from '../identity/owner/owner-key.ts';
import { type Result, runInProcess, startFakeServer, temporaryDirectory, wharf } from './cli.testing.ts';

/** Nothing on standard output, one line on standard error. */
function assertOneLine({ stdout, stderr }: Result, expected: RegExp): void {
  assert.equal(stdout, '');
  assert.match(stderr, /^wharf: [^\n]+\n$/);
  assert.match(stderr, expected);
}

test('--version and --help print to standard output', async () => {
  assert.deepEqual(await wharf(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
  const { code, stdout, stderr } = await wharf(['serve', '--help']);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  for (const { variable, ...setting } of Object.values(settings)) {
    assert.ok(stdout.includes(variable), variable);
    if ('default' in setting) assert.ok(stdout.includes(`"${setting.default}"`), variable);
  }
});

test('version shows the versions of the program and of the server', async (t) => {
  const server = await startFakeServer(t, ({ path }) =>
    path === '/version' ? { json: { version: '9.8.7' } } : { status: 404, text: '' },
  );
  const { code, stdout } = await runInProcess(['version', '--server', server]);
  assert.equal(code, 0);
  assert.equal(stdout, `wharf   ${version}, Node ${process.version}\nserver  9.8.7, ${server}\n`);
  const unreachable = await runInProcess(['version', '--server', 'http://127.0.0.1:1', '-o', 'json']);
  assert.equal(unreachable.code, 0);
  assert.equal(JSON.parse(unreachable.stdout).client.version, version);
  assert.equal(JSON.parse(unreachable.stdout).server.version, undefined);
});

test('a usage error is one line and exit code 2', async () => {
  const cases: [string[], RegExp][] = [
    [['sreve'], /unknown command 'sreve' \(Did you mean serve\?\)/],
    [['serve', '--lisen', ':80'], /unknown option '--lisen' \(Did you mean --listen\?\)/],
    [['serve', 'now\nplease'], /too many arguments/],
    [['ping', '--server', 'localhost'], /'--server <url>' argument 'localhost' is invalid.*such as https:/],
    [['auth', 'token', '--lifetime', 'long'], /'--lifetime <time>' argument 'long' is invalid.*such as 90s/],
    [['ping', '-o', 'xml'], /Allowed choices are table, json/],
    [['ping', '--ca', 'README.md'], /'--ca <file>' argument 'README.md' is invalid.*PEM/],
    [['iam', 'groups', 'lst'], /unknown command 'lst' \(Did you mean list\?\)/],
    [['iam', 'groups', 'list', '--limit', '0'], /'--limit <n>' argument '0' is invalid.*whole number/],
    [['iam', 'identities', 'create', '--name', 'x'], /required option '--parent <uid>' not specified/],
    [['iam', 'groups', 'update', 'x', '--verified', 'y'], /'--verified \[true\|false\]' argument 'y' is invalid/],
    [['auth', 'token', '--lifetime', '1h', '--cap', 'groups.list'], /cannot be used with option/],
    [['config', 'set', 'colour', 'red'], /Allowed choices are server, output/],
    [['config', 'set', 'output', 'xml'], /output="xml" cannot be used: write one of table, json/],
  ];
  for (const [args, expected] of cases) {
    const result = await runInProcess(args);
    assertOneLine(result, expected);
    assert.equal(result.code, 2);
  }
});

test('without a command it prints its help as a usage error', async () => {
  const { code, stdout, stderr } = await runInProcess([]);
  assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
  assert.match(stderr, /^Usage: wharf /);
});

test('an invalid setting stops the start with one line and exit code 1', async () => {
  const cases: [string[], Record<string, string>, RegExp][] = [
    [['serve'], { WHARF_LISTEN: 'nowhere' }, /WHARF_LISTEN="nowhere" cannot be used: write host:port/],
    [['serve', '--org', 'NO'], {}, /WHARF_ORG="NO" \(given as --org\) cannot be used/],
    [['serve'], { WHARF_DATABASE_URL: 'oracle://u:hunter2@h' }, /WHARF_DATABASE_URL cannot be used: write postgres:/],
    [['serve'], { WHARF_PUBLIC_URL: 'https://u:hunter2@h' }, /WHARF_PUBLIC_URL="https:.* cannot be used/],
  ];
  for (const [args, env, expected] of cases) {
    const result = await runInProcess(args, env);
    assertOneLine(result, expected);
    assert.doesNotMatch(result.stderr, /hunter2/);
    assert.equal(result.code, 1);
  }
});

test('auth token prints the token and nothing else', async (t) => {
  const data = temporaryDirectory(t);
  await saveOwner(data, await newOwner());
  const { code, stdout, stderr } = await wharf(['auth', 'token', '--lifetime', '2h'], { WHARF_DATA: data });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]+\n$/);
  const claims = JSON.parse(Buffer.from(stdout.split('.')[1] ?? '', 'base64url').toString());
  assert.equal(claims.exp - claims.iat, 7200);
});

test('auth token fails with one line if the data directory has no owner', async (t) => {
  const data = temporaryDirectory(t);
  const result = await runInProcess(['auth', 'token', '--data', data]);
  assertOneLine(result, new RegExp(`no owner in ${data}: start the server once`));
  assert.equal(result.code, 3);
});

/** A port that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('ping prints the response time', async (t) => {
  const server = await startFakeServer(t, ({ path }) => ({
    status: path === '/ping/v2/ping' ? 200 : 404,
    text: '{"response":"pong"}',
  }));
  const { code, stdout, stderr } = await wharf(['ping', '--server', `${server}/`]);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+ answered in \d+ ms\n$/);

  const json = await wharf(['ping', '-o', 'json'], { WHARF_SERVER: server });
  const { milliseconds, ...rest } = JSON.parse(json.stdout);
  assert.equal(typeof milliseconds, 'number');
  assert.deepEqual(rest, { server });
});

test('ping prints errors in one line', async (t) => {
  const cases: [status: number, text: string, code: number, words: RegExp][] = [
    [503, '{}', 9, /is reachable but answered 503 Service Unavailable/],
    [200, '<html>', 1, /is not a Wharfinger server/],
    [302, '', 1, /answered 302 Found: this is not a Wharfinger server/],
  ];
  for (const [status, text, code, words] of cases) {
    const result = await runInProcess(['ping', '--server', await startFakeServer(t, () => ({ status, text }))]);
    assertOneLine(result, words);
    assert.equal(result.code, code);
  }

  const vacant = await freePort();
  // localhost can have two addresses, which fail together.
  for (const server of [`http://127.0.0.1:${vacant}`, `http://localhost:${vacant}`]) {
    const refused = await runInProcess(['ping', '--server', server]);
    assertOneLine(refused, new RegExp(`nothing listens at ${server}: start a server with 'wharf serve'`));
    assert.equal(refused.code, 9);
  }
});

test('help works on every level, also for areas that are loaded on demand', async () => {
  for (const args of [
    ['iam', '--help'],
    ['help', 'iam'],
    ['iam', 'help', 'groups'],
    ['iam', 'groups', 'list', '--help'],
  ]) {
    const { code, stdout, stderr } = await runInProcess(args);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /^Usage: wharf iam/);
  }
});
