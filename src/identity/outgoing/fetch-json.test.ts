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
import { type FetchOptions, fetchJson } from './fetch-json.ts';
import { OutgoingError } from './permitted-url.ts';

const testData = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../test/data/tls/${name}`, import.meta.url)), 'utf8');

interface Peer {
  readonly port: number;
  /** How many connections it has seen. */
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
const loopback = { allowPrivate: true } satisfies FetchOptions;

async function refusal(url: string, options: FetchOptions = loopback): Promise<string> {
  try {
    await fetchJson(url, options);
  } catch (error) {
    assert.ok(error instanceof OutgoingError, String(error));
    return error.message;
  }
  return assert.fail(`fetched ${url}`);
}

test('an object comes with the time it may be kept, and the request carries nothing of ours', async (t) => {
  const { port } = await serve(t, (req, res) => {
    const kept = new URL(req.url ?? '', 'http://x').searchParams.get('kept');
    if (kept !== null) res.setHeader('cache-control', kept);
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
    const kept = await fetchJson(`${url}?kept=${encodeURIComponent(header)}`, loopback);
    assert.equal(kept.maxAgeMs, expected, header);
  }
});

test('only 200 with an uncompressed JSON object is an answer', async (t) => {
  const answers: Record<string, [RequestListener, RegExp]> = {
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
  const { port } = await serve(t, (req, res) => answers[req.url?.slice(1) ?? '']?.[0](req, res));
  for (const [path, [, expected]] of Object.entries(answers)) {
    assert.match(await refusal(`http://127.0.0.1:${port}/${path}`), expected, path);
  }
});

test('an answer of 10 MB and one without end are left as soon as they are too long', async (t) => {
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
    assert.match(await refusal(`http://127.0.0.1:${port}/${path}`), /more than 524288 bytes/);
  }
  assert.match(await refusal(`http://127.0.0.1:${port}/big`, { ...loopback, maxBytes: 10 }), /more than 10 bytes/);
});

test('whoever hangs, at whatever point, is left at the deadline', async (t) => {
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
    assert.equal(await refusal(`http://127.0.0.1:${port}/`, options), 'it did not answer within 0.06 s', stage);
  }
  // A TLS handshake that never goes on.
  const { port } = await listen(t, createTcpServer());
  assert.match(await refusal(`https://127.0.0.1:${port}/`, { ...loopback, timeoutMs: 60 }), /did not answer/);
});

test('over TLS the certificate must be good', async (t) => {
  const handler: RequestListener = (_, res) => res.end('{"tls":true}');
  const server = createTlsServer({ cert: testData('cert.pem'), key: testData('key.pem') }, handler);
  const { port } = await listen(t, server);
  const reason = 'it has no valid certificate: nobody whom this server trusts has signed it';
  assert.equal(await refusal(`https://localhost:${port}/`), reason);
  const before = tls.getCACertificates('default');
  t.after(() => tls.setDefaultCACertificates(before));
  tls.setDefaultCACertificates([...before, testData('cert.pem')]);
  assert.deepEqual((await fetchJson(`https://localhost:${port}/`, loopback)).json, { tls: true });
});

test('private addresses are not contacted, whether written or resolved', async (t) => {
  const server = createTlsServer({ cert: testData('cert.pem'), key: testData('key.pem') }, (_, res) => res.end('{}'));
  const { port, connections } = await listen(t, server);
  const hosts = ['127.0.0.1', '127.1', '2130706433', '0x7f.0.0.1', '[::ffff:127.0.0.1]', '[::1]', '0.0.0.0', '[::]'];
  hosts.push('localhost', 'localhost.', '169.254.169.254', '10.0.0.1', '[fd00::1]', '100.64.0.1');
  for (const host of hosts) {
    const reason = await refusal(`https://${host}:${port}/`, { allowPrivate: false });
    assert.equal(reason, 'its host has no public address', host);
  }
  assert.equal(connections(), 0);
});

test('a name that does not exist is refused in the same words', async () => {
  const options = { allowPrivate: false };
  assert.equal(await refusal('https://no-such-host.invalid/', options), 'its host has no public address');
});

test('without TLS only this machine, and only where private addresses are allowed', async (t) => {
  const { port, connections } = await serve(t, (_, res) => res.end('{}'));
  for (const host of ['127.0.0.1', 'localhost', 'example.com']) {
    assert.match(await refusal(`http://${host}:${port}/`, { allowPrivate: false }), /does not begin with https/);
  }
  for (const url of ['http://example.com/', 'http://10.0.0.1/', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'data:,{}']) {
    assert.match(await refusal(url), /does not begin with https/, url);
  }
  assert.match(await refusal('https://a:b@127.0.0.1/'), /user name/);
  assert.match(await refusal('no url'), /not a URL/);
  assert.equal(connections(), 0);
  await fetchJson(`http://localhost:${port}/`, loopback);
});

test('a proxy that the environment names is not used', async (t) => {
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

test('a port that nobody listens on', async () => {
  assert.equal(await refusal('http://127.0.0.1:1/'), 'it cannot be reached');
});
