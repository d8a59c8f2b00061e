import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { cpuMsSince } from '../../../src/base/cpu-time.testing.ts';
import { databases } from '../../support/databases.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { openSocket } from '../../support/raw-connections.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const request = (path: string, extra = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${extra}\r\n`;

for (const database of databases) {
  describe(`pipelined requests on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database);
    });
    after(() => server.remove());

    async function isHealthy(): Promise<void> {
      const response = await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } });
      assert.equal(response.status, 200);
    }

    for (const path of ['/metrics', '/openapi.json', '/docs', '/readyz']) {
      test(`3,000 requests for ${path} whose responses are not read cost little and do not delay others`, async (t) => {
        // Loads what the server loads with the first request.
        await (await fetch(`${server.url}${path}`)).arrayBuffer();
        const memory = process.memoryUsage();
        const started = process.cpuUsage();
        const attacker = await openSocket(server.url);
        t.after(() => attacker.destroy());
        attacker.pause().write(request(path).repeat(3_000));
        for (let i = 0; i < 20; i++) await isHealthy();
        assert.ok(cpuMsSince(started) < 3_000, `${cpuMsSince(started)} ms of processor time`);
        const { heapUsed, external } = process.memoryUsage();
        const grown = (heapUsed + external - memory.heapUsed - memory.external) / 2 ** 20;
        assert.ok(grown < 100, `${Math.round(grown)} MB more memory`);
      });
    }

    test('a client that reads gets its pipelined responses in order', async (t) => {
      const paths = Array.from({ length: 100 }, (_, i) =>
        i % 3 === 0 ? '/healthz' : i % 3 === 1 ? `/no/such/path/${i}` : '/.well-known/openid-configuration',
      );
      const client = await openSocket(server.url);
      t.after(() => client.destroy());
      client.write(paths.map((path, i) => request(path, i === 99 ? 'Connection: close\r\n' : '')).join(''));
      let received = '';
      for await (const chunk of client) received += chunk;
      const bodies = received.split(/HTTP\/1\.1 \d\d\d /).slice(1);
      assert.equal(bodies.length, paths.length);
      for (const [i, body] of bodies.entries()) {
        if (i % 3 === 0) assert.match(body, /\{"status":"ok"\}/);
        if (i % 3 === 1) assert.match(body, new RegExp(`/no/such/path/${i}\\b`));
        if (i % 3 === 2) assert.match(body, /"issuer":/);
      }
    });

    test('a client that sends requests while responses wait is paused, and is served when it reads', async (t) => {
      const client = await openSocket(server.url);
      t.after(() => client.destroy());
      const requests = 40;
      client.pause();
      for (let i = 0; i < requests; i++)
        client.write(request('/openapi.json', i === requests - 1 ? 'Connection: close\r\n' : ''));
      await isHealthy();
      let bytes = 0;
      for await (const chunk of client) bytes += chunk.length;
      const { length } = Buffer.from(await (await fetch(`${server.url}/openapi.json`)).arrayBuffer());
      assert.ok(bytes > requests * length, `${bytes} bytes`);
    });

    test('a connection with too many waiting requests is closed', async (t) => {
      const attacker = await openSocket(server.url);
      t.after(() => attacker.destroy());
      attacker.resume().write(request('/readyz').repeat(2_000));
      await pollUntil(async () => attacker.closed, Boolean);
      await isHealthy();
    });
  });
}
