import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { createDeliveryVerifier, startSink, type TestSink } from '../support/sink.ts';
import { type NewSubscription, subscribe } from '../support/subscribe.ts';
import { wires } from '../support/wires.ts';

const { createGroup, updateGroup } = GroupsService.method;

const GROUPS = 12;
const CHANGES = 15;

const env = {
  WHARF_WORKERS: '2',
  WHARF_ALLOW_INSECURE_SINKS: 'true',
  // The CA of the sink's certificate.
  NODE_EXTRA_CA_CERTS: fileURLToPath(new URL('../data/tls/ca.pem', import.meta.url)),
};

const COUNT_PENDING = `SELECT (SELECT count(*) FROM outbox WHERE expires IS NULL)
  + (SELECT count(*) FROM delivery WHERE state = 'pending') AS n`;

describe('two workers on one SQLite deliver over TLS', () => {
  let dataLocation: DataLocation;
  let server: ServerProcess;
  let store: Store;
  let sink: TestSink;
  let token: string;
  before(async () => {
    dataLocation = await (databases[0] ?? assert.fail()).createDataLocation();
    server = await spawnServer(dataLocation, env);
    await pollUntil(
      async () => server.log.filter((line) => line.includes('"worker serves"')).length,
      (workers) => workers === 2,
    );
    store = await openStore(dataLocation);
    sink = await startSink('signed');
    token = await mintOwnerToken(dataLocation.dataDir);
  });
  after(async () => {
    await server.stop();
    await sink.close();
    await store.close();
    await dataLocation.remove();
  });

  test('each event is delivered once to each of its subscriptions, whichever worker writes and sends it', async () => {
    const { url } = server;
    const { organization = '' } = (await readOwner(dataLocation.dataDir)) ?? {};
    // Concurrent requests use several connections, which are distributed to the workers in turn.
    const api = wires[0]?.connect(url, token) ?? assert.fail();
    const subscribed: NewSubscription[] = [];
    const groups = await Promise.all(
      Array.from({ length: GROUPS }, async (_, at) => {
        const { uid } = await api.call(createGroup, { parent: organization, group: { name: `group ${at}` } });
        subscribed.push(await subscribe('REST', { url, token }, uid, sink.url));
        return uid;
      }),
    );
    await Promise.all(
      groups.map(async (uid) => {
        for (let n = 0; n < CHANGES; n++) {
          await api.call(updateGroup, {
            group: { uid, description: `change ${n}` },
            updateMask: { paths: ['description'] },
          });
        }
      }),
    );

    await pollUntil(
      async () => (await store.reader.get<{ n: number }>(COUNT_PENDING))?.n,
      (n) => n === 0,
    );
    const changes = sink.received.filter(({ attributes }) => attributes.type?.includes('group.updated'));
    assert.equal(changes.length, GROUPS * CHANGES);
    const deliveries = sink.received.map(
      ({ attributes }) => `${attributes.id} ${attributes.chainguarddev1subscription}`,
    );
    assert.equal(new Set(deliveries).size, deliveries.length, 'no delivery is repeated');
    for (const uid of groups) {
      const updates = changes.filter(({ attributes }) => attributes.subject === uid);
      const descriptions = updates.map(({ body }) => JSON.parse(body).body.description);
      assert.deepEqual(
        descriptions,
        Array.from({ length: CHANGES }, (_, n) => `change ${n}`),
        'in order',
      );
    }
    const [first] = subscribed;
    const verify = createDeliveryVerifier({ issuer: url, subscription: first?.uid ?? '', secret: first?.secret ?? '' });
    const delivery = changes.find(({ attributes }) => attributes.chainguarddev1subscription === first?.uid);
    await verify(delivery ?? assert.fail());
  });
});
