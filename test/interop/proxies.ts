import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { GetGroupRequestSchema, GroupSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Database } from '../support/databases.ts';
import { isHaproxyInstalled } from '../support/haproxy.ts';
import { isNginxInstalled, startNginx } from '../support/nginx.ts';
import { digestOf, withDigest } from '../support/oci-client.ts';
import { type ProxyOptions, type ReverseProxy, startProxy } from '../support/proxy.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const TLS = join(import.meta.dirname, '../data/tls');
const files = { cert: join(TLS, 'cert.pem'), key: join(TLS, 'key.pem') };

/** Starts HAProxy, which speaks HTTP/2 to the server for all requests. */
function startHaproxyWithHttp2({ server, isServerTls, cert, key }: ProxyOptions): Promise<ReverseProxy> {
  return startProxy(async ([port, tlsPort]) => {
    const directory = mkdtempSync(join(tmpdir(), 'wharf-haproxy-'));
    writeFileSync(join(directory, 'pair.pem'), readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'));
    const protocol = isServerTls ? 'ssl verify none alpn h2' : 'proto h2';
    writeFileSync(
      join(directory, 'haproxy.cfg'),
      `
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend wharf
  bind 127.0.0.1:${port}
  bind 127.0.0.1:${tlsPort} ssl crt ${directory}/pair.pem alpn h2,http/1.1
  default_backend wharf
backend wharf
  server wharf ${server} ${protocol}
`,
    );
    const child = spawn('haproxy', ['-db', '-f', join(directory, 'haproxy.cfg')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    return { child, remove: () => rmSync(directory, { recursive: true, force: true }) };
  });
}

const proxies = [
  // HTTP/2 by prior knowledge: HAProxy detects it on its plaintext port, nginx does not.
  { name: 'HAProxy', isInstalled: isHaproxyInstalled, start: startHaproxyWithHttp2, detectsHttp2: true },
  { name: 'nginx', isInstalled: isNginxInstalled, start: startNginx, detectsHttp2: false },
];

/** Runs `curl` and returns what it prints. */
async function curl(...args: readonly string[]): Promise<string> {
  const child = spawn('curl', ['-sSk', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function expect(what: string, actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`${what}: expected ${expected}, got ${actual}`);
}

/** REST by GET and POST, and a blob pushed and pulled, with one protocol of curl. */
async function checkRest(url: string, server: TestServer, flag: string, version: string): Promise<void> {
  const auth = ['-H', `Authorization: Bearer ${server.token}`, flag];
  const group = `${url}/iam/v2/groups/${server.organization}`;
  const [body = '', used] = (await curl(...auth, '-w', '\n%{http_version}', group)).split('\n');
  expect(`protocol of ${flag}`, used, version);
  const { uid, name } = JSON.parse(body) as { uid: string; name: string };
  expect('group', uid, server.organization);
  const child = `through ${new URL(url).port} ${flag.replaceAll('-', '')}`;
  const created = JSON.parse(await curl(...auth, '-d', JSON.stringify({ name: child }), group)) as { name: string };
  expect('created group', created.name, child);
  expect('status without a token', await curl(flag, '-o', '/dev/null', '-w', '%{http_code}', group), '401');

  const directory = mkdtempSync(join(tmpdir(), 'wharf-blob-'));
  try {
    const content = randomBytes(5_000_000);
    const file = join(directory, 'blob');
    writeFileSync(file, content);
    const repository = `${name}/proxied`.toLowerCase().replaceAll(' ', '-');
    const uploads = `${url}/v2/${repository}/blobs/uploads/`;
    const head = await curl(...auth, '-D', '-', '-o', '/dev/null', '-X', 'POST', uploads);
    const [, location = ''] = /^location: (\S+)/im.exec(head) ?? [];
    const target = `${url}${withDigest(location.replace(/^https?:\/\/[^/]+/, ''), digestOf(content))}`;
    expect('push', await curl(...auth, '-o', '/dev/null', '-w', '%{http_code}', '-T', file, target), '201');
    await curl(...auth, '-o', `${file}.pulled`, `${url}/v2/${repository}/blobs/${digestOf(content)}`);
    expect('pulled blob', digestOf(readFileSync(`${file}.pulled`)), digestOf(content));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function checkGrpc(url: string, server: TestServer): Promise<void> {
  const isTls = url.startsWith('https');
  // The certificate of the tests is for localhost.
  const channel = isTls ? credentials.createSsl(readFileSync(files.cert)) : credentials.createInsecure();
  const client = new Client(new URL(url).host, channel, isTls ? { 'grpc.ssl_target_name_override': 'localhost' } : {});
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${server.token}`);
  try {
    const uid = await new Promise<string>((resolve, reject) => {
      client.makeUnaryRequest(
        '/chainguard.platform.iam.v2.GroupsService/GetGroup',
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes: Buffer) => fromBinary(GroupSchema, bytes),
        toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: server.organization })),
        metadata,
        { deadline: Date.now() + 20_000 },
        (error, group) => (error ? reject(error) : resolve(group?.uid ?? '')),
      );
    });
    expect('group over gRPC', uid, server.organization);
  } finally {
    client.close();
  }
}

/** Clients of each protocol through a proxy to a server with and without TLS. Returns whether all of it works. */
export async function testProxies(selected: readonly Database[]): Promise<boolean> {
  let isPassed = true;
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  for (const { name, isInstalled, start, detectsHttp2 } of proxies) {
    if (!isInstalled() || spawnSync('curl', ['--version']).status !== 0) {
      print(`interop-proxies: SKIPPED, because ${name} or curl is not installed; run tools/install-test-tools.sh`);
      if (process.env.CI === 'true') isPassed = false;
      continue;
    }
    for (const database of selected) {
      for (const isServerTls of [false, true]) {
        const title = `${name} to a server ${isServerTls ? 'with' : 'without'} TLS on ${database.name}`;
        const env = isServerTls ? { WHARF_TLS_CERT: files.cert, WHARF_TLS_KEY: files.key } : {};
        const server = await startTestServer(database, { env });
        const proxy = await start({ server: new URL(server.localUrl).host, isServerTls, ...files });
        try {
          await checkRest(proxy.url, server, '--http1.1', '1.1');
          await checkRest(proxy.tlsUrl, server, '--http1.1', '1.1');
          await checkRest(proxy.tlsUrl, server, '--http2', '2');
          await checkGrpc(proxy.tlsUrl, server);
          if (detectsHttp2) {
            await checkRest(proxy.url, server, '--http2-prior-knowledge', '2');
            await checkGrpc(proxy.url, server);
          }
          print(`interop-proxies: ok: REST, registry and gRPC through ${title}`);
        } catch (error) {
          isPassed = false;
          print(`interop-proxies: FAILED through ${title}: ${(error as Error).message}`);
        } finally {
          await proxy.stop();
          await server.remove();
        }
      }
    }
  }
  return isPassed;
}
