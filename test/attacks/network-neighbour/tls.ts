import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { grpcClient } from '../../../src/transport/server.testing.ts';
import { findDatabase } from '../../support/databases.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { spawnServer } from '../../support/process.ts';
import { startTestServer } from '../../support/server.ts';

const testFile = (name: string): string => readFileSync(new URL(`../../data/tls/${name}`, import.meta.url), 'utf8');
const old = { cert: testFile('cert.pem'), key: testFile('key.pem') };
const renewed = { cert: testFile('renewed.pem'), key: testFile('renewed-key.pem') };
const HEALTH_REQUEST = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const ca = [old.cert, renewed.cert];

/**
 * Files as Kubernetes mounts a secret: links to a link to a directory. An update replaces only the inner link, so the
 * paths of the files, and the links there, do not change.
 */
function mountedSecret(t: TestContext, pair: typeof old) {
  const root = mkdtempSync(join(tmpdir(), 'wharf-tls-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  let version = 0;
  const put = ({ cert, key }: typeof old): void => {
    const directory = join(root, `..version-${++version}`);
    mkdirSync(directory);
    writeFileSync(join(directory, 'tls.crt'), cert);
    writeFileSync(join(directory, 'tls.key'), key, { mode: 0o600 });
    symlinkSync(directory, join(root, '..data_tmp'));
    renameSync(join(root, '..data_tmp'), join(root, '..data'));
  };
  put(pair);
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(root, name));
  const env = {
    WHARF_TLS_CERT: join(root, 'tls.crt'),
    WHARF_TLS_KEY: join(root, 'tls.key'),
    WHARF_TLS_RELOAD: '100ms',
  };
  return { put, env, root };
}

async function openTls(t: TestContext, url: string, ALPNProtocols = ['http/1.1']): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), ca, ALPNProtocols });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

/** The common name of the certificate that a new connection gets, by the protocol of REST or gRPC. */
async function certificateName(t: TestContext, url: string, protocol = 'http/1.1'): Promise<string> {
  const socket = await openTls(t, url, [protocol]);
  const { subject } = socket.getPeerCertificate();
  if (protocol === 'http/1.1') {
    // Without a request, the server would wait for one before it stops.
    socket.write(HEALTH_REQUEST);
    await text(socket);
  }
  socket.destroy();
  return String(subject.CN);
}

for (const workers of [1, 2]) {
  test(`a renewed certificate is used without a restart: ${workers} worker(s)`, async (t) => {
    const location = await findDatabase('SQLite').createDataLocation();
    const { put, env } = mountedSecret(t, old);
    const server = await spawnServer(location, { ...env, WHARF_WORKERS: String(workers) });
    t.after(async () => {
      await server.kill();
      await location.remove();
    });
    const logged = (message: string) => async () => server.log.filter((line) => line.includes(message)).length;
    if (workers > 1) await pollUntil(logged('worker serves'), (count) => count === workers);
    assert.equal(await certificateName(t, server.url), 'localhost');
    const existing = await openTls(t, server.url);

    // A certificate with the key of another is not used.
    put({ cert: renewed.cert, key: old.key });
    await pollUntil(logged('the key belongs to another certificate'), (count) => count === workers);
    put({ cert: 'unreadable', key: '' });
    await pollUntil(logged('they must be a PEM certificate'), (count) => count === workers);
    for (let i = 0; i < workers; i++) assert.equal(await certificateName(t, server.url), 'localhost');

    put(renewed);
    await pollUntil(logged('replaced the TLS certificate'), (count) => count === workers);
    for (let i = 0; i < workers; i++) {
      assert.equal(await certificateName(t, server.url), 'renewed');
      assert.equal(await certificateName(t, server.url, 'h2'), 'renewed');
    }
    existing.write(HEALTH_REQUEST);
    assert.match(await text(existing), /^HTTP\/1\.1 200 /, 'existing connections go on');
    for (const line of server.log) assert.doesNotMatch(line, /PRIVATE KEY/);
  });
}

test('files that are missing for a while do not stop the server', async (t) => {
  const { put, env, root } = mountedSecret(t, old);
  const lines: string[] = [];
  const record = (_: unknown, message: string): void => void lines.push(message);
  const log = { debug() {}, info: record, warn: record, error: record };
  const server = await startTestServer(findDatabase('SQLite'), { env, log });
  t.after(() => server.remove());
  const count = (message: string) => async () => lines.filter((line) => line.includes(message)).length;
  renameSync(join(root, '..data'), join(root, '..away'));
  await pollUntil(count('cannot use the changed TLS files'), (found) => found === 1);
  assert.equal(await certificateName(t, server.url), 'localhost');
  rmSync(join(root, '..away'));
  put(renewed);
  await pollUntil(count('replaced the TLS certificate'), (found) => found === 1);
  assert.equal(await certificateName(t, server.url), 'renewed');
  const grpc = grpcClient(t, new URL(server.url).host.replace('127.0.0.1', 'localhost'), { ca: renewed.cert });
  assert.equal(typeof (await grpc.ping()), 'string');
  grpc.client.close();
  assert.equal(await count('cannot use the changed TLS files')(), 1, 'each problem is logged once');
});

test('a TLS key that other users can read is reported', async (t) => {
  const { env } = mountedSecret(t, old);
  chmodSync(env.WHARF_TLS_KEY, 0o644);
  const lines: string[] = [];
  const log = { debug() {}, info() {}, warn: (_: unknown, message: string) => void lines.push(message), error() {} };
  const server = await startTestServer(findDatabase('SQLite'), { env, log });
  await server.remove();
  assert.match(lines.join('\n'), /other users can read the TLS key/);
});

const paths = [
  '/healthz',
  '/readyz',
  '/docs',
  '/openapi.json',
  '/.well-known/openid-configuration',
  '/v2/',
  '/v2/token',
];
paths.push('/iam/v2/groups', '/sts/exchange', '/no/such/path');

async function headersOf(
  url: string,
  path: string,
  { host = 'wharf.example.com', method = 'GET' } = {},
): Promise<IncomingMessage['headers']> {
  const options: RequestOptions = { method, headers: { host, connection: 'close' }, agent: false };
  const isSecure = url.startsWith('https:');
  const sent = isSecure
    ? request(url + path, { ...options, ca, servername: 'localhost' })
    : requestPlain(url + path, options);
  const [response]: IncomingMessage[] = await once(sent.end(), 'response');
  assert.ok(response);
  await text(response);
  return response.headers;
}

test('over TLS, browsers are told to use only https, except for localhost', async (t) => {
  const { env } = mountedSecret(t, old);
  const server = await startTestServer(findDatabase('SQLite'), { env });
  t.after(() => server.remove());
  for (const path of paths) {
    const headers = await headersOf(server.url, path);
    assert.equal(headers['strict-transport-security'], 'max-age=31536000', path);
  }
  for (const host of ['localhost', 'localhost:8443', 'LOCALHOST', 'wharf.localhost:8443']) {
    assert.equal((await headersOf(server.url, '/healthz', { host }))['strict-transport-security'], undefined, host);
  }
});

test('without TLS, or if the operator turns it off, browsers are not told to use only https', async (t) => {
  const { env } = mountedSecret(t, old);
  for (const variables of [{}, { ...env, WHARF_HSTS: '0s' }]) {
    const server = await startTestServer(findDatabase('SQLite'), { env: variables });
    t.after(() => server.remove());
    for (const path of paths) {
      assert.equal((await headersOf(server.url, path))['strict-transport-security'], undefined, path);
    }
  }
});

test('no response lets a browser guess its type or names the server, and no token response is stored', async (t) => {
  const server = await startTestServer(findDatabase('SQLite'));
  t.after(() => server.remove());
  for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
    for (const path of paths) {
      const headers = await headersOf(server.url, path, { method });
      assert.equal(headers['x-content-type-options'], 'nosniff', `${method} ${path}`);
      assert.equal(headers.server ?? headers['x-powered-by'], undefined);
      assert.equal(headers['access-control-allow-credentials'], undefined);
      if (/token|exchange/.test(path)) assert.equal(headers['cache-control'], 'no-store', `${method} ${path}`);
    }
  }
});
