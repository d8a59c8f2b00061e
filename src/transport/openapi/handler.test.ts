import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { files, methodTable } from '../../contract/method-table.ts';
import { createDocs } from './handler.ts';

const methods = methodTable(files);

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** Serves the documents, and 404 for what they leave to others. */
async function serve(t: TestContext, serviceUrl = () => 'http://wharf.example.com') {
  const docs = createDocs({ methods, version: '1.2.3', serviceUrl });
  const server = createServer((req, res) => {
    if (!docs(req, res)) res.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  // Not fetch, which asks for gzip and unpacks it behind our back.
  return async (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> => {
    const sent = request({ port, path, method, headers, host: '127.0.0.1', agent: false }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: answer.statusCode, headers: answer.headers, body: await buffer(answer) };
  };
}

test('/openapi.json is the contract, for the address that clients use', async (t) => {
  let url = 'http://127.0.0.1:0';
  const ask = await serve(t, () => url);
  await ask('/openapi.json');
  url = 'https://wharf.example.com';
  const { status, headers, body } = await ask('/openapi.json?pretty');
  assert.equal(status, 200);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(headers['content-length'], String(body.length));
  assert.equal(headers['access-control-allow-origin'], '*');
  const document = JSON.parse(body.toString());
  assert.equal(document.info.version, '1.2.3');
  assert.deepEqual(document.servers, [{ url }]);
});

test('/docs and /docs/ are one page that may load nothing but itself', async (t) => {
  const ask = await serve(t);
  const page = await ask('/docs');
  assert.equal(page.status, 200);
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  assert.equal(page.headers['x-content-type-options'], 'nosniff');
  const policy = String(page.headers['content-security-policy']);
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.deepEqual((await ask('/docs/')).body, page.body);
});

for (const path of ['/openapi.json', '/docs']) {
  test(`${path} is not sent again to those who have it`, async (t) => {
    const ask = await serve(t);
    const etag = String((await ask(path)).headers.etag);
    assert.match(etag, /^W\/"[\w-]+"$/);
    for (const tags of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      const { status, headers, body } = await ask(path, { 'if-none-match': tags });
      assert.equal(status, 304, tags);
      assert.equal(headers.etag, etag);
      assert.equal(body.length, 0);
    }
    assert.equal((await ask(path, { 'if-none-match': '"other"' })).status, 200);
  });

  test(`${path} is compressed for those who can read it`, async (t) => {
    const ask = await serve(t);
    const plain = await ask(path);
    assert.equal(plain.headers['content-encoding'], undefined);
    for (const accepted of ['gzip', 'br, gzip;q=0.5', 'GZIP', '*']) {
      const { headers, body } = await ask(path, { 'accept-encoding': accepted });
      assert.equal(headers['content-encoding'], 'gzip', accepted);
      assert.equal(headers.vary, 'accept-encoding');
      assert.equal(headers.etag, plain.headers.etag);
      assert.ok(body.length * 3 < plain.body.length);
      assert.deepEqual(gunzipSync(body), plain.body);
    }
    for (const refused of ['br', 'gzip;q=0', 'gzip; q=0.000', 'identity']) {
      const { headers } = await ask(path, { 'accept-encoding': refused });
      assert.equal(headers['content-encoding'], undefined, refused);
    }
  });

  test(`${path} answers HEAD without a body, and refuses other verbs`, async (t) => {
    const ask = await serve(t);
    const head = await ask(path, {}, 'HEAD');
    assert.equal(head.status, 200);
    assert.equal(head.body.length, 0);
    assert.equal(head.headers['content-length'], String((await ask(path)).body.length));
    const post = await ask(path, {}, 'POST');
    assert.equal(post.status, 405);
    assert.equal(post.headers.allow, 'GET, HEAD');
  });
}

test('other paths are left to others', async (t) => {
  const ask = await serve(t);
  for (const path of ['/', '/docs/page.js', '/docsx', '/openapi.yaml', '/iam/v2/groups']) {
    assert.equal((await ask(path)).status, 404, path);
  }
});
