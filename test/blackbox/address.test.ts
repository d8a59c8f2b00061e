import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import type { Log } from '../../src/base/log.ts';
import { runInProcess } from '../../src/cli/cli.testing.ts';
import { findDatabase } from '../support/databases.ts';
import { digestOf, type OciResponse, ociClient } from '../support/oci-client.ts';
import { pollUntil } from '../support/poll-until.ts';
import { spawnServer } from '../support/process.ts';
import { silentLog, startTestServer, type TestServer } from '../support/server.ts';

const database = findDatabase('SQLite');

/** An address of this machine that other machines can connect to, or loopback if it has none. */
const ownAddress =
  Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address ?? '127.0.0.2';

async function get(url: string, path: string, headers: Record<string, string> = {}): Promise<OciResponse> {
  const client = ociClient(url);
  try {
    return await client.send('GET', path, { headers });
  } finally {
    client.close();
  }
}

const realmOf = ({ headers }: OciResponse): string | undefined =>
  /realm="([^"]*)"/.exec(headers['www-authenticate'] ?? '')?.[1];

const jsonOf = ({ body }: OciResponse) => JSON.parse(body.toString()) as Record<string, unknown>;

describe('a server on all interfaces without a public URL', () => {
  let server: TestServer;
  let port: string;
  before(async () => {
    const env = { WHARF_LISTEN: ':0', WHARF_ALLOWED_HOSTS: 'wharf.example.com' };
    server = await startTestServer(database, { env });
    port = new URL(server.url).port;
  });
  after(() => server.remove());

  test('a registry client on another machine can log in', async () => {
    // The steps of docker: ask, follow the realm with the password, ask again with the token.
    const url = `http://${ownAddress}:${port}`;
    const challenge = await get(url, '/v2/');
    assert.equal(challenge.status, 401);
    assert.equal(realmOf(challenge), `${url}/v2/token`);
    const service = /service="([^"]*)"/.exec(challenge.headers['www-authenticate'] ?? '')?.[1] ?? '';
    const basic = `Basic ${Buffer.from(`user:${server.token}`).toString('base64')}`;
    const response = await fetch(`${realmOf(challenge)}?service=${encodeURIComponent(service)}`, {
      headers: { authorization: basic },
    });
    const { token } = (await response.json()) as { token: string };
    assert.equal((await get(url, '/v2/', { authorization: `Bearer ${token}` })).status, 200);
    // A password that is refused at the realm has the same challenge.
    assert.equal((await fetch(`${url}/v2/token`, { headers: { authorization: 'Basic eDp5' } })).status, 401);
  });

  test('links follow an allowed host, and the issuer of tokens stays', async () => {
    for (const host of [`localhost:${port}`, 'wharf.example.com']) {
      assert.equal(realmOf(await get(server.url, '/v2/', { host })), `http://${host}/v2/token`);
      const document = jsonOf(await get(server.url, '/.well-known/openid-configuration', { host }));
      assert.equal(document.issuer, server.url);
      assert.equal(document.jwks_uri, `http://${host}/.well-known/jwks.json`);
      assert.equal(document.token_endpoint, `http://${host}/sts/exchange`);
    }
    assert.deepEqual(jsonOf(await get(server.url, '/openapi.json')).servers, [{ url: '/' }]);
  });

  test('a token that was issued at one address is valid at all of them', async () => {
    const { code, stdout } = await runInProcess(
      ['auth', 'token', '--server', `http://localhost:${port}`, '--audience', server.url],
      {
        WHARF_TOKEN: server.token,
      },
    );
    assert.equal(code, 0);
    const claims = JSON.parse(Buffer.from(stdout.split('.')[1] ?? '', 'base64url').toString()) as { iss: string };
    assert.equal(claims.iss, server.url);
    const authorization = `Bearer ${stdout.trim()}`;
    assert.equal((await get(`http://${ownAddress}:${port}`, '/iam/v2/groups', { authorization })).status, 200);
  });
});

describe('a server behind a trusted proxy', () => {
  let server: TestServer;
  const peers: unknown[] = [];
  const log: Log = {
    ...silentLog,
    info: (fields, message) => void (message === 'call' && peers.push((fields as { peer: string }).peer)),
  };
  before(async () => {
    const env = { WHARF_TRUSTED_PROXIES: '127.0.0.1', WHARF_ALLOWED_HOSTS: 'wharf.example.com,*.internal' };
    server = await startTestServer(database, { env, log });
  });
  after(() => server.remove());

  const forwarding = [
    { forwarded: 'for="[2001:db8::7]:55";host=wharf.example.com;proto=https' },
    { 'x-forwarded-for': '2001:db8::7', 'x-forwarded-host': 'wharf.example.com', 'x-forwarded-proto': 'https' },
  ];

  test('links have the host and scheme that the client used', async () => {
    for (const headers of forwarding) {
      assert.equal(realmOf(await get(server.url, '/v2/', headers)), 'https://wharf.example.com/v2/token');
      const document = jsonOf(await get(server.url, '/.well-known/openid-configuration', headers));
      assert.equal(document.jwks_uri, 'https://wharf.example.com/.well-known/jwks.json');
    }
    // Many proxies pass the Host header on and write only the scheme.
    const passed = { host: 'a.internal', 'x-forwarded-proto': 'https' };
    assert.equal(realmOf(await get(server.url, '/v2/', passed)), 'https://a.internal/v2/token');
  });

  test('the log has the address of the client, on every wire', async () => {
    const { credentials, Client } = await import('@grpc/grpc-js');
    for (const headers of forwarding) {
      peers.length = 0;
      const authorization = 'Bearer nonsense';
      await get(server.url, '/iam/v2/groups', { ...headers, authorization });
      await get(server.url, '/v2/', { ...headers, authorization });
      const metadata = new Metadata();
      for (const [name, value] of Object.entries({ ...headers, authorization })) metadata.set(name, value);
      const client = new Client(new URL(server.url).host, credentials.createInsecure());
      await new Promise<void>((resolve) => {
        const path = '/chainguard.platform.iam.v2.GroupsService/ListGroups';
        const same = (bytes: Buffer): Buffer => bytes;
        client.makeUnaryRequest(path, same, same, Buffer.alloc(0), metadata, () => resolve());
      });
      client.close();
      assert.deepEqual(peers, ['2001:db8::7', '2001:db8::7', '2001:db8::7']);
    }
  });
});

describe('a server below a path', () => {
  const PUBLIC_URL = 'https://example.com/apps/wharf';
  let server: TestServer;
  let authorization: string;
  before(async () => {
    server = await startTestServer(database, { env: { WHARF_PUBLIC_URL: PUBLIC_URL } });
    authorization = `Bearer ${server.token}`;
  });
  after(() => server.remove());

  // A proxy removes the path, or passes it on.
  for (const prefix of ['', '/apps/wharf']) {
    test(`responds to paths that begin with "${prefix}/"`, async () => {
      assert.equal((await get(server.localUrl, `${prefix}/iam/v2/groups`, { authorization })).status, 200);
      assert.equal((await get(server.localUrl, `${prefix}/healthz`)).status, 200);
      assert.equal(realmOf(await get(server.localUrl, `${prefix}/v2/`)), `${PUBLIC_URL}/v2/token`);
      const document = jsonOf(await get(server.localUrl, `${prefix}/.well-known/openid-configuration`));
      assert.deepEqual(
        [document.issuer, document.jwks_uri, document.token_endpoint],
        [PUBLIC_URL, `${PUBLIC_URL}/.well-known/jwks.json`, `${PUBLIC_URL}/sts/exchange`],
      );
      assert.deepEqual(jsonOf(await get(server.localUrl, `${prefix}/openapi.json`)).servers, [{ url: PUBLIC_URL }]);
      const page = (await get(server.localUrl, `${prefix}/docs`)).body.toString();
      assert.match(page, /<html lang="en" data-prefix="\/apps\/wharf">/);
      assert.match(page, /href="\/apps\/wharf\/openapi\.json"/);
    });
  }

  test('a push with the path in its URLs stays below it', async () => {
    const client = ociClient(server.localUrl, authorization);
    const content = Buffer.from('a layer');
    const begun = await client.send('POST', '/apps/wharf/v2/my-org/app/blobs/uploads/');
    assert.equal(begun.status, 202, begun.body.toString());
    const location = String(begun.headers.location);
    assert.ok(location.startsWith('/apps/wharf/v2/my-org/app/blobs/uploads/'), location);
    const separator = location.includes('?') ? '&' : '?';
    const put = await client.send('PUT', `${location}${separator}digest=${digestOf(content)}`, { body: content });
    assert.equal(put.status, 201, put.body.toString());
    assert.equal(put.headers.location, `/apps/wharf/v2/my-org/app/blobs/${digestOf(content)}`);
    assert.equal((await client.send('GET', String(put.headers.location))).body.toString(), 'a layer');
    // Without it in the request, it is not in the response: registry clients use the root of a host.
    const root = await client.send('POST', '/v2/my-org/app/blobs/uploads/');
    assert.match(String(root.headers.location), /^\/v2\/my-org\/app\//);
    client.close();
  });

  test('the command line can use it', async () => {
    const env = { WHARF_SERVER: `${server.localUrl}/apps/wharf/`, WHARF_TOKEN: server.token };
    const { code, stdout, stderr } = await runInProcess(['iam', 'groups', 'list', '-o', 'json'], env);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.match(stdout, /my-org/);
    const exchanged = await runInProcess(
      ['auth', 'token', '--cap', 'groups.list', '--scope', server.organization],
      env,
    );
    assert.equal(exchanged.code, 0, exchanged.stderr);
    const claims = JSON.parse(Buffer.from(exchanged.stdout.split('.')[1] ?? '', 'base64url').toString());
    assert.deepEqual([claims.iss, [claims.aud].flat()], [PUBLIC_URL, [PUBLIC_URL]]);
    assert.equal(
      (await get(server.localUrl, '/iam/v2/groups', { authorization: `Bearer ${exchanged.stdout.trim()}` })).status,
      200,
    );
  });
});

test('a path that begins like one of the server is refused', async () => {
  for (const path of ['v2', 'iam', 'docs/wharf', '.well-known']) {
    await assert.rejects(
      startTestServer(database, { env: { WHARF_PUBLIC_URL: `https://example.com/${path}` } }),
      /WHARF_PUBLIC_URL="[^"]*" cannot be used: the server has paths that begin with/,
    );
  }
});

test('a server that other machines can reach says what it needs to know', async (t) => {
  const location = await database.createDataLocation();
  t.after(() => location.remove());
  const server = await spawnServer(location, { WHARF_LISTEN: ':0', WHARF_ALLOWED_HOSTS: 'box.lan' });
  t.after(() => server.kill());
  const lines = await pollUntil(
    async () => server.log.map((line) => JSON.parse(line) as { level: string; message: string }),
    (log) => log.some(({ level }) => level === 'warn'),
  );
  const warnings = lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? '',
    /^WHARF_PUBLIC_URL is not set, .* for http:\/\/127\.0\.0\.1:\d+: .*box\.lan.*Set WHARF_PUBLIC_URL/,
  );
});
