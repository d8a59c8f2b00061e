import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { databases } from '../../../test/support/databases.ts';
import { ociClient, pushImage } from '../../../test/support/oci-client.ts';
import { startTestServer } from '../../../test/support/server.ts';
import { PROGRAM } from '../built-program.testing.ts';
import { type Result, runInProcess, startFakeServer, temporaryDirectory } from '../cli.testing.ts';
import { ExitCode } from '../exit-codes.ts';

const HELPER = join(dirname(PROGRAM), 'docker-credential-wharf.sh');

/** Runs the helper as docker does: by a link in the PATH, without the Node of the package. */
function helper(verb: string, input: string, env: Record<string, string>): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-helper-'));
  const link = join(directory, 'docker-credential-wharf');
  symlinkSync(HELPER, link);
  return new Promise<Result>((resolve) => {
    const options = { env: { PATH: '/usr/bin:/bin', ...env } };
    const child = execFile(link, [verb], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
    child.stdin?.end(input);
  }).finally(() => rmSync(directory, { recursive: true }));
}

/** A user with a temporary configuration, and a fake server that accepts the token `good`. */
async function createUser(t: TestContext) {
  const directory = temporaryDirectory(t);
  const env = { XDG_CONFIG_HOME: directory, DOCKER_CONFIG: join(directory, 'docker') };
  const server = await startFakeServer(t, ({ headers }) =>
    headers.authorization === 'Bearer good' ? { json: {} } : { status: 401, text: '' },
  );
  const config = join(directory, 'docker', 'config.json');
  const wharf = (...args: string[]) => runInProcess([...args, '--server', server], env);
  return {
    env,
    server,
    host: new URL(server).host,
    config,
    wharf,
    read: () => JSON.parse(readFileSync(config, 'utf8')),
  };
}

test('login sets the credential helper and keeps the rest of the file', async (t) => {
  const { wharf, host, config, read, env } = await createUser(t);
  mkdirSync(env.DOCKER_CONFIG);
  writeFileSync(config, JSON.stringify({ auths: { 'example.com': {} }, credHelpers: { 'gcr.io': 'gcloud' } }));
  const { code, stdout, stderr } = await wharf('registry', 'login', '--token', 'good');
  assert.deepEqual([code, stdout.includes(host)], [0, true]);
  assert.match(stderr, /docker-credential-wharf, which is not in your PATH/);
  assert.deepEqual(read(), { auths: { 'example.com': {} }, credHelpers: { 'gcr.io': 'gcloud', [host]: 'wharf' } });
  assert.equal(statSync(config).mode & 0o777, 0o600);

  assert.match((await wharf('registry', 'logout')).stdout, /no longer/);
  assert.deepEqual(read().credHelpers, { 'gcr.io': 'gcloud' });
  assert.match((await wharf('registry', 'logout')).stdout, /did not/);
});

test('an invalid login changes nothing', async (t) => {
  const { wharf, config } = await createUser(t);
  const { code, stderr } = await wharf('registry', 'login', '--token', 'bad');
  assert.equal(code, 3);
  assert.match(stderr, /rejects your token/);
  assert.throws(() => statSync(config));
});

test('the helper implements store, get, list and erase', async (t) => {
  const { env, host } = await createUser(t);
  const missing = await helper('get', 'wharf.example.com\n', env);
  assert.deepEqual([missing.code, missing.stdout], [1, 'credentials not found in native keychain\n']);

  const stored = await helper('store', JSON.stringify({ ServerURL: host, Username: 'me', Secret: 'good' }), env);
  assert.deepEqual([stored.code, stored.stdout], [0, '']);
  for (const registry of [host, `http://${host}`, `https://${host}/v2/`]) {
    const { code, stdout } = await helper('get', registry, env);
    assert.equal(code, 0, stdout);
    assert.deepEqual(JSON.parse(stdout), { ServerURL: registry, Username: '_token', Secret: 'good' });
  }
  assert.deepEqual(JSON.parse((await helper('list', '', env)).stdout), { [`http://${host}`]: '_token' });
  assert.equal((await helper('erase', host, env)).code, 0);
  assert.deepEqual(JSON.parse((await helper('list', '', env)).stdout), {});
});

test('the helper prints errors in one line', async (t) => {
  const { env } = await createUser(t);
  for (const [verb, input] of [
    ['get', 'not a host'],
    ['store', 'not JSON'],
    ['store', '{}'],
    ['dance', ''],
  ] as const) {
    const { code, stdout, stderr } = await helper(verb, input, env);
    assert.deepEqual([code, stdout.trim().split('\n').length, stderr], [1, 1, ''], `${verb} ${input}`);
  }
});

test('gc beside a running server', async (t) => {
  const [sqlite] = databases;
  assert.ok(sqlite);
  const server = await startTestServer(sqlite);
  t.after(() => server.remove());
  const client = ociClient(server.url, `Bearer ${server.token}`);
  t.after(() => client.close());
  await pushImage(client, 'my-org/app', 'v1');
  await client.pushBlob('my-org/app', Buffer.alloc(3000));
  const gc = (...args: string[]) => runInProcess(['registry', 'gc', '--data', server.dataLocation.dataDir, ...args]);
  const { code, stdout } = await gc('--dry-run', '--grace', '1h');
  assert.deepEqual([code, stdout], [0, 'would remove 0 blobs, 0 uploads, 0 links, 0 referrers: 0 bytes\n']);
  const { stdout: json } = await gc('-o', 'json');
  assert.deepEqual(JSON.parse(json), { dryRun: false, referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 });
  const invalid = await gc('--grace', 'soon');
  assert.equal(invalid.code, ExitCode.usage);
  assert.match(invalid.stderr, /a duration from 0s to 3650d/);
  const upload = await client.send('POST', '/v2/my-org/app/blobs/uploads/');
  const unsafe = await gc('--grace', '5m');
  assert.equal(unsafe.code, ExitCode.precondition);
  assert.match(unsafe.stderr, /1 uploads were active in the last 5 minutes/);
  await client.send('DELETE', String(upload.headers.location));
  assert.equal((await gc('--grace', '5m')).code, 0);
  assert.match((await gc('--grace', '0s')).stdout, /^removed 1 blobs, 0 uploads, 1 links, /);
  const withoutRegistry = await runInProcess(['registry', 'gc', '--data', temporaryDirectory(t)]);
  assert.match(withoutRegistry.stderr, /no registry in/);
});
