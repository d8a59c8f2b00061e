import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { type DataLocation, databases, findDatabase } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { startTestServer } from '../support/server.ts';

interface Response {
  readonly status: number | undefined;
  readonly connection: string | undefined;
  readonly body: string;
}

/** Sends a request on a connection of its own, or on one of `agent`. */
function send(url: string, agent = new Agent()): Promise<Response> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response: IncomingMessage) => {
      const { statusCode: status, headers } = response;
      text(response).then((body) => resolve({ status, connection: headers.connection, body }), reject);
    }).on('error', reject);
  });
}

async function newLocation(t: TestContext): Promise<DataLocation> {
  const location = await findDatabase().createDataLocation();
  t.after(location.remove);
  return location;
}

async function start(t: TestContext, env: Record<string, string> = {}): Promise<ServerProcess> {
  const server = await spawnServer(await newLocation(t), env);
  t.after(() => server.kill());
  return server;
}

const linesOf = ({ log }: ServerProcess, message: string): Record<string, unknown>[] =>
  log.map((line) => JSON.parse(line)).filter((line) => line.message === message);

const untilLogged = (server: ServerProcess, message: string, count = 1) =>
  pollUntil(
    async () => linesOf(server, message),
    (lines) => lines.length >= count,
  );

for (const database of databases) {
  test(`a stop drains: not ready, but serving, until the port closes (${database.name})`, async (t) => {
    const draining = Promise.withResolvers<number>();
    const drained = Promise.withResolvers<void>();
    const server = await startTestServer(database, {
      env: { WHARF_DRAIN: '5m', WHARF_OPERATIONS_LISTEN: '127.0.0.1:0' },
      pause: (ms) => {
        draining.resolve(ms);
        return drained.promise;
      },
    });
    t.after(() => server.remove());
    const { url, operationsUrl } = server;
    const agent = new Agent({ keepAlive: true });
    assert.deepEqual((await send(`${url}/readyz`, agent)).connection, 'keep-alive');

    const stopped = server.stop();
    assert.equal(await draining.promise, 300_000);
    assert.deepEqual(await send(`${url}/readyz`, agent), { ...(await send(`${url}/readyz`)), status: 503 });
    const notReady = await send(`${operationsUrl}/readyz`);
    assert.equal(notReady.status, 503);
    assert.match(notReady.body, /the server is shutting down/);
    const { status, connection } = await send(`${url}/ping/v2/ping`);
    assert.deepEqual({ status, connection }, { status: 200, connection: 'close' });

    drained.resolve();
    await stopped;
    await assert.rejects(send(`${url}/readyz`), { code: 'ECONNREFUSED' });
    await assert.rejects(send(`${operationsUrl}/readyz`), { code: 'ECONNREFUSED' });
  });
}

test('workers drain together: new connections are served until the drain ends', async (t) => {
  const server = await start(t, { WHARF_WORKERS: '2', WHARF_DRAIN: '2s' });
  await untilLogged(server, 'worker serves', 2);
  const ended = server.stop();
  await untilLogged(server, 'draining: serving until load balancers notice that the server is not ready', 2);
  const statuses = new Set<string>();
  // Until the port is closed, every connection gets a response.
  for (let isOpen = true; isOpen; ) {
    const response = await send(`${server.url}/readyz`).catch((error: NodeJS.ErrnoException) => error);
    isOpen = !(response instanceof Error);
    statuses.add(response instanceof Error ? String(response.code) : `${response.status} ${response.connection}`);
  }
  assert.equal(await ended, 0);
  assert.deepEqual([...statuses].slice(0, 1), ['503 close']);
  // A connection may be established at the moment in which the port closes. It is reset.
  statuses.delete('503 close');
  assert.match([...statuses].join(), /^ECONN(REFUSED|RESET)$/);
});

for (const workers of ['1', '2']) {
  test(`without a reader of its log, the server serves and stops (workers: ${workers})`, async (t) => {
    const server = await start(t, { WHARF_WORKERS: workers });
    server.process.stderr?.destroy();
    for (let i = 0; i < 5; i++) assert.equal((await send(`${server.url}/ping/v2/ping`)).status, 200);
    assert.equal(await server.stop(), 0);
  });
}

test('with a reader of its log that does not read, the server serves and stops', async (t) => {
  const server = await start(t, { WHARF_LOG_LEVEL: 'debug' });
  server.process.stderr?.removeAllListeners('data').removeAllListeners('readable').pause();
  const agent = new Agent({ keepAlive: true });
  // More lines than the pipe takes.
  for (let i = 0; i < 1_000; i++) assert.equal((await send(`${server.url}/ping/v2/ping`, agent)).status, 200);
  assert.equal(await server.stop(), 0);
});

const tlsFile = (name: string): string => fileURLToPath(new URL(`../data/tls/${name}`, import.meta.url));

/** The serial number of the certificate that the server uses. */
function serialOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    }).on('error', reject);
  });
}

for (const workers of ['1', '2']) {
  test(`SIGHUP reloads the certificate and settings, and ends nothing (workers: ${workers})`, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'wharf-hangup-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const [cert, key, config] = ['cert.pem', 'key.pem', 'wharf.yaml'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    copyFileSync(tlsFile('cert.pem'), cert);
    copyFileSync(tlsFile('key.pem'), key);
    writeFileSync(config, `log_level: info\nworkers: ${workers}\n`);
    const server = await start(t, {
      ...{ WHARF_CONFIG: config, WHARF_TLS_CERT: cert, WHARF_TLS_KEY: key, WHARF_TLS_RELOAD: '1d' },
    });
    if (workers === '2') await untilLogged(server, 'worker serves', 2);
    const before = await serialOf(server.url);

    copyFileSync(tlsFile('renewed.pem'), cert);
    copyFileSync(tlsFile('renewed-key.pem'), key);
    writeFileSync(config, 'log_level: debug\nworkers: 7\n');
    server.process.kill('SIGHUP');
    const processes = workers === '2' ? 3 : 1;
    for (const { changed } of await untilLogged(server, 'reloaded the settings', processes)) {
      assert.deepEqual(changed, ['WHARF_LOG_LEVEL', 'WHARF_TLS_CERT, WHARF_TLS_KEY']);
    }
    const [warning] = await untilLogged(server, 'changed settings that need a restart keep their values', processes);
    assert.deepEqual(warning?.changed, ['WHARF_WORKERS']);
    assert.notEqual(await serialOf(server.url), before);

    writeFileSync(config, 'log_level: loud\n');
    server.process.kill('SIGHUP');
    const [refusal] = await untilLogged(server, 'cannot reload the settings: all of them keep their values');
    assert.match(String(refusal?.problem), /log_level|WHARF_LOG_LEVEL/);
    assert.notEqual(await serialOf(server.url), before);
    assert.equal(await server.stop(), 0);
  });
}
