import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { files, methodTable } from '../../contract/method-table.ts';
import { createDocsHandler } from './handler.ts';

const methods = methodTable(files);

interface ReceivedResponse {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Serves the documents, and 404 for other paths. */
async function serve(t: TestContext, serviceUrl = 'http://wharf.example.com') {
  const handle = createDocsHandler({ methods, version: '1.2.3', serviceUrl });
  const server = createServer((req, res) => {
    if (!handle(req, res)) res.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  // Not fetch, which requests gzip and decompresses it.
  return async (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<ReceivedResponse> => {
    const sent = request({ port, path, method, headers, host: '127.0.0.1', agent: false }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  };
}

test('/openapi.json describes the contract, with the URL that clients use', async (t) => {
  const url = 'https://wharf.example.com';
  const send = await serve(t, url);
  const { status, headers, body } = await send('/openapi.json?pretty');
  assert.equal(status, 200);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(headers['content-length'], String(body.length));
  assert.equal(headers['access-control-allow-origin'], '*');
  const document = JSON.parse(body.toString());
  assert.equal(document.info.version, '1.2.3');
  assert.deepEqual(document.servers, [{ url }]);
});

test('/docs and /docs/ are the same page, which may load nothing else', async (t) => {
  const send = await serve(t);
  const page = await send('/docs');
  assert.equal(page.status, 200);
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  assert.equal(page.headers['x-content-type-options'], 'nosniff');
  const policy = String(page.headers['content-security-policy']);
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.deepEqual((await send('/docs/')).body, page.body);
});

for (const path of ['/openapi.json', '/docs']) {
  test(`${path} is not sent again to a client that has it`, async (t) => {
    const send = await serve(t);
    const etag = String((await send(path)).headers.etag);
    assert.match(etag, /^W\/"[\w-]+"$/);
    for (const tags of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      const { status, headers, body } = await send(path, { 'if-none-match': tags });
      assert.equal(status, 304, tags);
      assert.equal(headers.etag, etag);
      assert.equal(body.length, 0);
    }
    assert.equal((await send(path, { 'if-none-match': '"other"' })).status, 200);
  });

  test(`${path} is compressed for clients that accept gzip`, async (t) => {
    const send = await serve(t);
    const plain = await send(path);
    assert.equal(plain.headers['content-encoding'], undefined);
    for (const accepted of ['gzip', 'br, gzip;q=0.5', 'GZIP', '*']) {
      const { headers, body } = await send(path, { 'accept-encoding': accepted });
      assert.equal(headers['content-encoding'], 'gzip', accepted);
      assert.equal(headers.vary, 'accept-encoding');
      assert.equal(headers.etag, plain.headers.etag);
      assert.ok(body.length * 3 < plain.body.length);
      assert.deepEqual(gunzipSync(body), plain.body);
    }
    for (const refused of ['br', 'gzip;q=0', 'gzip; q=0.000', 'identity']) {
      const { headers } = await send(path, { 'accept-encoding': refused });
      assert.equal(headers['content-encoding'], undefined, refused);
    }
  });

  test(`${path} responds to HEAD without a body, and refuses other verbs`, async (t) => {
    const send = await serve(t);
    const head = await send(path, {}, 'HEAD');
    assert.equal(head.status, 200);
    assert.equal(head.body.length, 0);
    assert.equal(head.headers['content-length'], String((await send(path)).body.length));
    const post = await send(path, {}, 'POST');
    assert.equal(post.status, 405);
    assert.equal(post.headers.allow, 'GET, HEAD');
  });
}

test('other paths are not handled', async (t) => {
  const send = await serve(t);
  for (const path of ['/', '/docs/page.js', '/docsx', '/openapi.yaml', '/iam/v2/groups']) {
    assert.equal((await send(path)).status, 404, path);
  }
});
