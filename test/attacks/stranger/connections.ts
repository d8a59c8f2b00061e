import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { databases } from '../../support/databases.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { openSocket } from '../../support/raw-connections.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const GET = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/** An HTTP/2 frame. */
function frame(type: number, payload: Uint8Array, flags = 0, stream = 0): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const settings = frame(4, Buffer.alloc(0));
const ping = frame(6, Buffer.alloc(8));
const reset = (stream: number): Buffer => frame(3, Buffer.from([0, 0, 0, 8]), 0, stream);
/** The headers of a POST to /a over http, from the static table of HPACK. */
const post = (stream: number): Buffer =>
  frame(1, Buffer.from([0x83, 0x86, 0x04, 2, 0x2f, 0x61, 0x01, 1, 0x78]), 4, stream);

for (const database of databases) {
  describe(`connections on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database, { env: { WHARF_MAX_CONNECTIONS_PER_ADDRESS: '20' } });
    });
    after(() => server.remove());

    test('one address cannot take all connections, and gets another when one of its closes', async (t) => {
      const sockets = await Promise.all(Array.from({ length: 20 }, () => openSocket(server.url)));
      t.after(() => sockets.forEach((socket) => void socket.destroy()));
      // The server has accepted all of them when it has answered the last.
      for (const socket of sockets) {
        socket.write(GET);
        await once(socket, 'data');
      }
      const refused = await openSocket(server.url);
      refused.resume().write(GET);
      await once(refused, 'close');
      sockets[0]?.destroy();
      await pollUntil(async () => {
        const next = await openSocket(server.url);
        next.write(GET);
        const [data] = await Promise.race([once(next, 'data'), once(next, 'close')]);
        next.destroy();
        return data;
      }, Buffer.isBuffer);
    });

    for (const [name, flood] of [
      ['pings', () => ping],
      ['settings', () => settings],
      ['requests that are cancelled at once', (i: number) => Buffer.concat([post(2 * i + 1), reset(2 * i + 1)])],
    ] as const) {
      test(`an HTTP/2 connection with a flood of ${name} is closed`, async (t) => {
        // Each of these would end the process of a server.
        const crashes: Error[] = [];
        const record = (error: Error): void => void crashes.push(error);
        process.on('uncaughtExceptionMonitor', record);
        t.after(() => process.off('uncaughtExceptionMonitor', record));
        const attacker = await openSocket(server.url);
        t.after(() => attacker.destroy());
        attacker.pause().write(PREFACE);
        attacker.write(settings);
        let sent = 0;
        await pollUntil(async () => {
          if (attacker.destroyed) return true;
          attacker.write(Buffer.concat(Array.from({ length: 2_000 }, () => flood(sent++))));
          return false;
        }, Boolean);
        const response = await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } });
        assert.equal(response.status, 200);
        assert.deepEqual(crashes, []);
      });
    }
  });
}
