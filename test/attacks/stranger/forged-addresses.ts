// A client forges the headers by which a server learns its own name and the address of its client. It must neither
// plant a foreign URL into responses, nor choose the address that logs and limits see.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import type { Log } from '../../../src/base/log.ts';
import { databases } from '../../support/databases.ts';
import { ociClient } from '../../support/oci-client.ts';
import { silentLog, startTestServer, type TestServer } from '../../support/server.ts';

const [database] = databases;

const forgeries: readonly Record<string, string>[] = [
  { host: 'evil.example' },
  { host: 'evil.example:8080' },
  { host: 'localhost.evil.example' },
  { host: '127.0.0.1.evil.example' },
  { host: '192.0.2.66' },
  { host: '[2001:db8::66]' },
  { host: 'localhost", realm="https://evil.example' },
  { host: 'localhost@evil.example' },
  { host: 'evil.example/localhost' },
  { host: 'localhost\\evil.example' },
  { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
  { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'https' },
  { forwarded: 'for=192.0.2.66;host=evil.example;proto=https' },
  { forwarded: 'for=192.0.2.66;host=localhost;proto=https' },
  { 'x-original-url': '/evil', 'x-forwarded-prefix': '/evil', 'x-forwarded-server': 'evil.example' },
];

const paths = [
  '/v2/',
  '/v2/my-org/app/manifests/latest',
  '/.well-known/openid-configuration',
  '/openapi.json',
  '/docs',
];

for (const listen of ['127.0.0.1:0', ':0']) {
  describe(`forged headers at a server that listens on ${listen} and trusts no proxy`, () => {
    let server: TestServer;
    const peers: unknown[] = [];
    const log: Log = {
      ...silentLog,
      info: (fields, message) => void (message === 'call' && peers.push((fields as { peer: string }).peer)),
    };
    before(async () => {
      server = await startTestServer(database ?? assert.fail(), { env: { WHARF_LISTEN: listen }, log });
    });
    after(() => server.remove());

    test('no response contains a forged host, or another scheme', async () => {
      const client = ociClient(server.url);
      for (const headers of forgeries) {
        for (const path of paths) {
          const response = await client.send('GET', path, { headers });
          const text = JSON.stringify(response.headers) + response.body.toString();
          assert.doesNotMatch(text, /evil|192\.0\.2\.66|2001:db8::66/, `${path} ${JSON.stringify(headers)}`);
          assert.doesNotMatch(String(response.headers['www-authenticate']), /https:/);
        }
      }
      client.close();
    });

    test('a challenge is never cached', async () => {
      const client = ociClient(server.url);
      const { headers } = await client.send('GET', '/v2/', { headers: { host: 'localhost' } });
      assert.equal(headers['cache-control'], 'no-store');
      client.close();
    });

    test('logs and limits see the address of the connection, on every wire', async () => {
      const forged = { 'x-forwarded-for': '192.0.2.66', forwarded: 'for=192.0.2.66' };
      const authorization = 'Bearer nonsense';
      peers.length = 0;
      await fetch(`${server.url}/iam/v2/groups`, { headers: { ...forged, authorization } });
      await fetch(`${server.url}/v2/`, { headers: { ...forged, authorization } });
      const metadata = new Metadata();
      for (const [name, value] of Object.entries({ ...forged, authorization })) metadata.set(name, value);
      const client = new GrpcClient(new URL(server.url).host, credentials.createInsecure());
      await new Promise<void>((resolve) => {
        const same = (bytes: Buffer): Buffer => bytes;
        const path = '/chainguard.platform.iam.v2.GroupsService/ListGroups';
        client.makeUnaryRequest(path, same, same, Buffer.alloc(0), metadata, () => resolve());
      });
      client.close();
      assert.equal(peers.length, 3);
      for (const peer of peers) assert.match(String(peer), /^(?:::ffff:)?127\.0\.0\.1$/);
    });
  });
}

describe('forged headers behind a proxy that writes only X-Forwarded-For and passes the others on', () => {
  let server: TestServer;
  before(async () => {
    const env = { WHARF_TRUSTED_PROXIES: '127.0.0.1', WHARF_ADDRESS_RATE: '10' };
    server = await startTestServer(database ?? assert.fail(), { env, clock: () => 1_800_000_000_000 });
  });
  after(() => server.remove());

  test('a client cannot escape its limit by Forwarded', async () => {
    const statuses: number[] = [];
    for (let guess = 0; guess < 30; guess++) {
      const response = await fetch(`${server.url}/iam/v2/groups`, {
        headers: {
          authorization: `Bearer guess-${guess}`,
          'x-forwarded-for': '192.0.2.1',
          forwarded: `for=198.51.100.${guess}`,
        },
      });
      statuses.push(response.status);
    }
    assert.deepEqual([statuses[0], statuses.at(-1)], [401, 429]);
    // And it cannot use up the limit of the address that it claims.
    const other = await fetch(`${server.url}/iam/v2/groups`, { headers: { 'x-forwarded-for': '198.51.100.3' } });
    assert.equal(other.status, 401);
  });
});
