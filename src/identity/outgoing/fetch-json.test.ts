import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, get, type RequestListener, setGlobalProxyFromEnv } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type FetchJsonOptions, fetchJson } from './fetch-json.ts';
import { OutgoingError } from './permitted-url.ts';

const testData = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../test/data/tls/${name}`, import.meta.url)), 'utf8');

interface Peer {
  readonly port: number;
  /** Returns the number of connections so far. */
  readonly connections: () => number;
}

async function listen(t: TestContext, server: Server): Promise<Peer> {
  const sockets = new Set<Socket>();
  let seen = 0;
  server.on('connection', (socket: Socket) => {
    seen += 1;
    sockets.add(socket.on('error', () => {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, connections: () => seen };
}

const serve = (t: TestContext, handler: RequestListener) => listen(t, createServer(handler));
const loopback = { allowPrivate: true } satisfies FetchJsonOptions;

async function errorOf(url: string, options: FetchJsonOptions = loopback): Promise<string> {
  try {
    await fetchJson(url, options);
  } catch (error) {
    assert.ok(error instanceof OutgoingError, String(error));
    return error.message;
  }
  return assert.fail(`fetched ${url}`);
}

test('returns the object and its max-age, and sends no credentials or cookies', async (t) => {
  const { port } = await serve(t, (req, res) => {
    const cacheControl = new URL(req.url ?? '', 'http://x').searchParams.get('cache-control');
    if (cacheControl !== null) res.setHeader('cache-control', cacheControl);
    res.setHeader('set-cookie', 'a=b');
    res.end(JSON.stringify({ method: req.method, headers: req.headers }));
  });
  const url = `http://127.0.0.1:${port}/`;
  await fetchJson(url, loopback);
  const { json, maxAgeMs } = await fetchJson(url, loopback);
  assert.equal(maxAgeMs, undefined);
  const { host, connection, 'user-agent': agent, ...rest } = json.headers as Record<string, string>;
  assert.equal(json.method, 'GET');
  assert.match(agent ?? '', /^wharfinger\/\d/);
  assert.equal(connection, 'close');
  assert.deepEqual(rest, { accept: 'application/json', 'accept-encoding': 'identity' });
  const ages: [string, number | undefined][] = [
    ['public, max-age=90, must-revalidate', 90_000],
    ['MAX-AGE=0', 0],
    ['no-store', 0],
    ['private', undefined],
    ['max-age=many', undefined],
  ];
  for (const [header, expected] of ages) {
    const fetched = await fetchJson(`${url}?cache-control=${encodeURIComponent(header)}`, loopback);
    assert.equal(fetched.maxAgeMs, expected, header);
  }
});

test('only status 200 with an uncompressed JSON object is accepted', async (t) => {
  const responses: Record<string, [RequestListener, RegExp]> = {
    redirect: [(_, res) => res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end('{}'), /redirect/],
    here: [(_, res) => res.writeHead(307, { location: '/object' }).end('{}'), /redirect/],
    missing: [(_, res) => res.writeHead(404).end('{}'), /status 404/],
    partial: [(_, res) => res.writeHead(206).end('{}'), /status 206/],
    html: [(_, res) => res.end('<html>secret</html>'), /^it did not answer with a JSON object$/],
    list: [(_, res) => res.end('[]'), /JSON object/],
    nothing: [(_, res) => res.end(), /JSON object/],
    empty: [(_, res) => res.end('null'), /JSON object/],
    zipped: [(_, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{}')), /compressed/],
    cut: [
      (_, res) => res.writeHead(200, { 'content-length': 10 }).write('{}', () => res.destroy()),
      /cannot be reached/,
    ],
  };
  const { port } = await serve(t, (req, res) => responses[req.url?.slice(1) ?? '']?.[0](req, res));
  for (const [path, [, expected]] of Object.entries(responses)) {
    assert.match(await errorOf(`http://127.0.0.1:${port}/${path}`), expected, path);
  }
});

test('a response of 10 MB and an endless one are aborted at the size limit', async (t) => {
  const sent = { big: 0, endless: 0 };
  const chunk = Buffer.alloc(64 * 1024, ' ');
  const { port } = await serve(t, (req, res) => {
    const kind = req.url === '/big' ? 'big' : 'endless';
    const limit = kind === 'big' ? 10 * 1024 * 1024 : Number.POSITIVE_INFINITY;
    const more = () => {
      while (!res.destroyed && sent[kind] < limit) {
        sent[kind] += chunk.length;
        if (!res.write(chunk)) return void res.once('drain', more);
      }
      res.end();
    };
    more();
  });
  for (const path of ['big', 'endless']) {
    assert.match(await errorOf(`http://127.0.0.1:${port}/${path}`), /more than 524288 bytes/);
  }
  assert.match(await errorOf(`http://127.0.0.1:${port}/big`, { ...loopback, maxBytes: 10 }), /more than 10 bytes/);
});

test('a server that hangs at any point is aborted at the timeout', async (t) => {
  const stages: Record<string, (socket: Socket) => void> = {
    'before the answer': () => {},
    'inside the headers': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-type: '),
    'inside the body': (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{'),
    'after hints without end': (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(3)),
  };
  for (const [stage, answer] of Object.entries(stages)) {
    const { port } = await listen(
      t,
      createTcpServer((socket) => socket.once('data', () => answer(socket))),
    );
    const options = { ...loopback, timeoutMs: 60 };
    assert.equal(await errorOf(`http://127.0.0.1:${port}/`, options), 'it did not answer within 0.06 s', stage);
  }
  // A TLS handshake that never completes.
  const { port } = await listen(t, createTcpServer());
  assert.match(await errorOf(`https://127.0.0.1:${port}/`, { ...loopback, timeoutMs: 60 }), /did not answer/);
});

test('the TLS certificate must be valid', async (t) => {
  const handler: RequestListener = (_, res) => res.end('{"tls":true}');
  const server = createTlsServer({ cert: testData('cert.pem'), key: testData('key.pem') }, handler);
  const { port } = await listen(t, server);
  const reason = 'it has no valid certificate: it is not signed by an authority that this server trusts';
  assert.equal(await errorOf(`https://localhost:${port}/`), reason);
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  t.after(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
  assert.equal(await errorOf(`https://localhost:${port}/`), reason, 'the environment cannot turn the check off');
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  const before = tls.getCACertificates('default');
  t.after(() => tls.setDefaultCACertificates(before));
  tls.setDefaultCACertificates([...before, testData('cert.pem')]);
  assert.deepEqual((await fetchJson(`https://localhost:${port}/`, loopback)).json, { tls: true });
});

test('private addresses are not contacted, whether literal or resolved', async (t) => {
  const server = createTlsServer({ cert: testData('cert.pem'), key: testData('key.pem') }, (_, res) => res.end('{}'));
  const { port, connections } = await listen(t, server);
  const hosts = ['127.0.0.1', '127.1', '2130706433', '0x7f.0.0.1', '[::ffff:127.0.0.1]', '[::1]', '0.0.0.0', '[::]'];
  hosts.push('localhost', 'localhost.', '169.254.169.254', '10.0.0.1', '[fd00::1]', '100.64.0.1');
  for (const host of hosts) {
    const reason = await errorOf(`https://${host}:${port}/`, { allowPrivate: false });
    assert.equal(reason, 'its host has no public address', host);
  }
  assert.equal(connections(), 0);
});

test('a host that does not exist has the same error message', async () => {
  const options = { allowPrivate: false };
  assert.equal(await errorOf('https://no-such-host.invalid/', options), 'its host has no public address');
});

test('HTTP without TLS is permitted only to this machine, and only when private addresses are allowed', async (t) => {
  const { port, connections } = await serve(t, (_, res) => res.end('{}'));
  for (const host of ['127.0.0.1', 'localhost', 'example.com']) {
    assert.match(await errorOf(`http://${host}:${port}/`, { allowPrivate: false }), /does not begin with https/);
  }
  for (const url of ['http://example.com/', 'http://10.0.0.1/', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'data:,{}']) {
    assert.match(await errorOf(url), /does not begin with https/, url);
  }
  assert.match(await errorOf('https://a:b@127.0.0.1/'), /user name/);
  assert.match(await errorOf('no url'), /not a URL/);
  assert.equal(connections(), 0);
  await fetchJson(`http://localhost:${port}/`, loopback);
});

test('a proxy from the environment is not used', async (t) => {
  const proxy = await serve(t, (_, res) => res.end('{"proxy":true}'));
  const { port } = await serve(t, (_, res) => res.end('{"proxy":false}'));
  t.after(setGlobalProxyFromEnv({ HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, NO_PROXY: '' }));
  const url = `http://127.0.0.1:${port}/`;
  assert.deepEqual((await fetchJson(url, loopback)).json, { proxy: false });
  assert.equal(proxy.connections(), 0);
  // Other requests do use it.
  const [response] = await once(get(url), 'response');
  response.destroy();
  assert.equal(proxy.connections(), 1);
});

test('a closed port', async () => {
  assert.equal(await errorOf('http://127.0.0.1:1/'), 'it cannot be reached');
});
