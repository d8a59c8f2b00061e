import { after, before, describe, test } from 'node:test';
import { databases } from '../../support/databases.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { openSocket } from '../../support/raw-connections.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const UNREAD_MS = 300;

for (const database of databases) {
  describe(`responses that are not read on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database, { limits: { unreadMs: UNREAD_MS } });
    });
    after(() => server.remove());

    test('a client that reads nothing is disconnected', async (t) => {
      const client = await openSocket(server.url);
      t.after(() => client.destroy());
      // More than the buffers of the operating system hold.
      client.pause().write('GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(50));
      await pollUntil(async () => {
        // Only a write shows a paused client that the connection is closed.
        if (!client.destroyed) client.write('G');
        return client.destroyed;
      }, Boolean);
    });
  });
}
