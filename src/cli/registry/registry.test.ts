import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { databases } from '../../../test/support/databases.ts';
import { ociClient, pushImage } from '../../../test/support/oci-client.ts';
import { startTestServer } from '../../../test/support/server.ts';
import { type Result, runHere, scratch, standIn } from '../cli.testing.ts';

const HELPER = fileURLToPath(new URL('../docker-credential-wharf.sh', import.meta.url));

/** Runs the helper as docker does: by a link on the PATH, where our own Node is not. */
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

/** A user with a home of their own, and a server that takes the token `good`. */
async function user(t: TestContext) {
  const home = scratch(t);
  const env = { XDG_CONFIG_HOME: home, DOCKER_CONFIG: join(home, 'docker') };
  const server = await standIn(t, ({ headers }) =>
    headers.authorization === 'Bearer good' ? { json: {} } : { status: 401, text: '' },
  );
  const config = join(home, 'docker', 'config.json');
  const wharf = (...args: string[]) => runHere([...args, '--server', server], env);
  return {
    env,
    server,
    host: new URL(server).host,
    config,
    wharf,
    read: () => JSON.parse(readFileSync(config, 'utf8')),
  };
}

test('login makes clients ask us, and leaves the rest of their file alone', async (t) => {
  const { wharf, host, config, read, env } = await user(t);
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

test('a login that does not work changes nothing', async (t) => {
  const { wharf, config } = await user(t);
  const { code, stderr } = await wharf('registry', 'login', '--token', 'bad');
  assert.equal(code, 3);
  assert.match(stderr, /does not take your token/);
  assert.throws(() => statSync(config));
});

test('the helper speaks as docker expects: store, get, list and erase', async (t) => {
  const { env, host } = await user(t);
  const nothing = await helper('get', 'wharf.example.com\n', env);
  assert.deepEqual([nothing.code, nothing.stdout], [1, 'credentials not found in native keychain\n']);

  const stored = await helper('store', JSON.stringify({ ServerURL: host, Username: 'me', Secret: 'good' }), env);
  assert.deepEqual([stored.code, stored.stdout], [0, '']);
  for (const asked of [host, `http://${host}`, `https://${host}/v2/`]) {
    const { code, stdout } = await helper('get', asked, env);
    assert.equal(code, 0, stdout);
    assert.deepEqual(JSON.parse(stdout), { ServerURL: asked, Username: '_token', Secret: 'good' });
  }
  assert.deepEqual(JSON.parse((await helper('list', '', env)).stdout), { [`http://${host}`]: '_token' });
  assert.equal((await helper('erase', host, env)).code, 0);
  assert.deepEqual(JSON.parse((await helper('list', '', env)).stdout), {});
});

test('the helper says what is wrong in one line', async (t) => {
  const { env } = await user(t);
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
  const gc = (...args: string[]) => runHere(['registry', 'gc', '--data', server.home.dataDir, ...args]);
  const { code, stdout } = await gc('--dry-run', '--grace', '1h');
  assert.deepEqual([code, stdout], [0, 'would remove 0 blobs, 0 uploads, 0 links, 0 referrers: 0 bytes\n']);
  const { stdout: json } = await gc('-o', 'json');
  assert.deepEqual(JSON.parse(json), { dryRun: false, referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 });
  const short = await gc('--grace', '5m');
  assert.equal(short.code, 2);
  assert.match(short.stderr, /a time from 1h/);
  const nowhere = await runHere(['registry', 'gc', '--data', scratch(t)]);
  assert.match(nowhere.stderr, /no registry in/);
});
