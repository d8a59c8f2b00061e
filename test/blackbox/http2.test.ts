import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { request as requestHttp1 } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import type { Method } from '../../src/contract/method.ts';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';
import { databases } from '../support/databases.ts';
import { connectHttp2, type Http2Client, type Http2Response } from '../support/http2-client.ts';
import { digestOf, withDigest } from '../support/oci-client.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const methods = withV2beta1(methodTable(files));

/** Headers of one protocol only, and those whose values differ from request to request. */
const NOT_COMPARED = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'x-request-id', ':status']);

const comparable = ({ status, headers, body }: Http2Response) => ({
  status,
  headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_COMPARED.has(name))),
  // Times differ.
  body: body.toString().replace(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"TIME"'),
});

async function sendHttp1(
  url: string,
  verb: string,
  path: string,
  { headers = {}, body }: { readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<Http2Response> {
  const { hostname, port } = new URL(url);
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const outgoing = requestHttp1({ hostname, port, method: verb, path, headers: { ...headers, ...length } });
  return new Promise((resolve, reject) => {
    outgoing.on('error', reject).on('response', (res) => {
      buffer(res).then((all) => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: all }), reject);
    });
    outgoing.end(body);
  });
}

const pathOf = ({ template }: Method['routes'][number], uid: string): string =>
  template.replace(/\{[\w.]+(?:=([^}]*))?\}/g, (_, pattern?: string) => (pattern === '**' ? uid : 'x'));

for (const database of databases) {
  describe(`REST and the registry over HTTP/2 on ${database.name}`, () => {
    let server: TestServer;
    let client: Http2Client;
    before(async () => {
      server = await startTestServer(database);
      client = await connectHttp2(server.url);
    });
    after(async () => {
      client.close();
      await server.remove();
    });

    const withToken = () => ({ authorization: `Bearer ${server.token}`, 'x-request-id': 'the-same' });

    async function assertSame(
      verb: string,
      path: string,
      options: { headers?: Record<string, string>; body?: string },
    ) {
      const expected = await sendHttp1(server.url, verb, path, options);
      const actual = await client.send(verb, path, options);
      assert.deepEqual(comparable(actual), comparable(expected), `${verb} ${path}`);
      return actual;
    }

    test('every route of the contract responds as over HTTP/1.1', async () => {
      const missing = `${server.organization}/${'0'.repeat(16)}`;
      let count = 0;
      for (const method of methods) {
        for (const route of method.routes) {
          // The organization exists, so reads return something. Other requests name nothing that exists.
          const path = pathOf(route, route.verb === 'GET' ? server.organization : missing);
          const body = route.body === undefined ? {} : { body: '{}' };
          const { status } = await assertSame(route.verb, path, { headers: withToken(), ...body });
          assert.notEqual(status, 500, path);
          count++;
        }
      }
      assert.ok(count > 200, `${count} routes`);
    });

    for (const [verb, path] of [
      ['GET', '/healthz'],
      ['HEAD', '/healthz'],
      ['GET', '/readyz'],
      ['POST', '/readyz'],
      ['GET', '/version'],
      ['GET', '/docs'],
      ['GET', '/openapi.json'],
      ['GET', '/.well-known/openid-configuration'],
      ['GET', '/v2/'],
      ['GET', '/v2/_catalog'],
      ['GET', '/v2/no/such/tags/list'],
      ['GET', '/nowhere'],
      ['OPTIONS', '/iam/v2/groups'],
      ['PROPFIND', '/iam/v2/groups'],
      ['GET', '/iam/v2/groups/%zz'],
    ] as const) {
      test(`${verb} ${path} responds as over HTTP/1.1`, async () => {
        await assertSame(verb, path, { headers: withToken() });
      });
    }

    test('without a token a request is refused as over HTTP/1.1, and its body is not read', async () => {
      const headers = { 'x-request-id': 'the-same' };
      const { status } = await assertSame('POST', '/iam/v2/groups', { headers, body: '{'.repeat(100_000) });
      assert.equal(status, 401);
    });

    test('metrics are served', async () => {
      const { status, body } = await client.send('GET', '/metrics');
      assert.equal(status, 200);
      assert.match(body.toString(), /wharf_requests_total\{[^}]*wire="rest"/);
    });

    test('a resource is created, changed, listed and deleted, with concurrent requests', async () => {
      const headers = withToken();
      const create = async (i: number) => {
        const body = JSON.stringify({ name: `h2 ${i}` });
        const created = await client.send('POST', `/iam/v2/groups/${server.organization}`, { headers, body });
        assert.equal(created.status, 200, created.body.toString());
        return JSON.parse(created.body.toString()).uid as string;
      };
      const uids = await Promise.all(Array.from({ length: 50 }, (_, i) => create(i)));
      const patched = await client.send('PATCH', `/iam/v2/groups/${uids[0]}`, { headers, body: '{"name":"h2 new"}' });
      assert.equal(JSON.parse(patched.body.toString()).name, 'h2 new');
      const list = await client.send('GET', `/iam/v1/groups?uidp.childrenOf=${server.organization}`, { headers });
      assert.equal(JSON.parse(list.body.toString()).items.length, 50);
      const deleted = await Promise.all(uids.map((uid) => client.send('DELETE', `/iam/v2/groups/${uid}`, { headers })));
      assert.ok(deleted.every(({ status }) => status === 200));
    });

    test('a blob of 20 MB is pushed with and without a length, and pulled', async () => {
      const headers = withToken();
      const content = randomBytes(20_000_000);
      const digest = digestOf(content);
      const organization = await client.send('GET', `/iam/v2/groups/${server.organization}`, { headers });
      const name = `${JSON.parse(organization.body.toString()).name}/h2`.toLowerCase().replaceAll(' ', '-');
      for (const length of [{}, { 'content-length': content.length }]) {
        const opened = await client.send('POST', `/v2/${name}/blobs/uploads/`, { headers });
        assert.equal(opened.status, 202, opened.body.toString());
        const patch = { ...headers, ...length, 'content-type': 'application/octet-stream' };
        const sent = await client.send('PATCH', opened.headers.location ?? '', { headers: patch, body: content });
        assert.equal(sent.status, 202, sent.body.toString());
        const finished = await client.send('PUT', withDigest(sent.headers.location, digest), { headers });
        assert.equal(finished.status, 201, finished.body.toString());
      }
      const pulled = await client.send('GET', `/v2/${name}/blobs/${digest}`, { headers });
      assert.equal(digestOf(pulled.body), digest);
      const head = await client.send('HEAD', `/v2/${name}/blobs/${digest}`, { headers });
      assert.deepEqual([head.status, head.headers['content-length']], [200, `${content.length}`]);
      const range = { ...headers, range: 'bytes=5-9' };
      const part = await client.send('GET', `/v2/${name}/blobs/${digest}`, { headers: range });
      assert.deepEqual([part.status, part.body], [206, content.subarray(5, 10)]);
    });

    test('an upload that the client breaks off is not taken as complete', async () => {
      const headers = withToken();
      const organization = await client.send('GET', `/iam/v2/groups/${server.organization}`, { headers });
      const name = `${JSON.parse(organization.body.toString()).name}/cut`.toLowerCase().replaceAll(' ', '-');
      const opened = await client.send('POST', `/v2/${name}/blobs/uploads/`, { headers });
      const content = randomBytes(100_000);
      const path = withDigest(opened.headers.location, digestOf(content));
      const upload = client.session.request({ ':method': 'PUT', ':path': path, ...headers });
      upload.on('error', () => {});
      await new Promise((resolve) => upload.write(content, resolve));
      upload.destroy(new Error('broken off'));
      const head = await client.send('HEAD', `/v2/${name}/blobs/${digestOf(content)}`, { headers });
      assert.equal(head.status, 404);
    });
  });
}
