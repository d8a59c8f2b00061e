import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { databases, type Home } from '../support/databases.ts';
import { until } from '../support/eventually.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';
import { createVerify, startSink, type TestSink } from '../support/sink.ts';
import { type Subscribed, subscribe } from '../support/subscribe.ts';
import { wires } from '../support/wires.ts';

const { createGroup, updateGroup } = GroupsService.method;

const GROUPS = 12;
const CHANGES = 15;

const env = {
  WHARF_WORKERS: '2',
  WHARF_ALLOW_INSECURE_SINKS: 'true',
  // Who signed the certificate of the sink.
  NODE_EXTRA_CA_CERTS: fileURLToPath(new URL('../data/tls/ca.pem', import.meta.url)),
};

const UNDER_WAY = `SELECT (SELECT count(*) FROM outbox WHERE expires IS NULL)
  + (SELECT count(*) FROM delivery WHERE state = 'pending') AS n`;

describe('two workers on one SQLite deliver over TLS', () => {
  let home: Home;
  let server: ServerProcess;
  let store: Store;
  let sink: TestSink;
  let token: string;
  before(async () => {
    home = await (databases[0] ?? assert.fail()).home();
    server = await spawnServer(home, env);
    await until(
      async () => server.log.filter((line) => line.includes('"worker serves"')).length,
      (workers) => workers === 2,
    );
    store = await openStore(home);
    sink = await startSink('signed');
    token = await mintOwnerToken(home.dataDir);
  });
  after(async () => {
    await server.stop();
    await sink.close();
    await store.close();
    await home.remove();
  });

  test('each event arrives once at each subscription that hears it, whoever wrote it and whoever sends it', async () => {
    const { url } = server;
    const { organization = '' } = (await readOwner(home.dataDir)) ?? {};
    // Requests at the same time take several connections, which are dealt out to the workers in turn.
    const api = wires[0]?.connect(url, token) ?? assert.fail();
    const subscribed: Subscribed[] = [];
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

    await until(
      async () => (await store.reader.get<{ n: number }>(UNDER_WAY))?.n,
      (n) => n === 0,
    );
    const changes = sink.received.filter(({ attributes }) => attributes.type?.includes('group.updated'));
    assert.equal(changes.length, GROUPS * CHANGES);
    const told = sink.received.map(({ attributes }) => `${attributes.id} ${attributes.chainguarddev1subscription}`);
    assert.equal(new Set(told).size, told.length, 'none twice');
    for (const uid of groups) {
      const heard = changes.filter(({ attributes }) => attributes.subject === uid);
      const said = heard.map(({ body }) => JSON.parse(body).body.description);
      assert.deepEqual(
        said,
        Array.from({ length: CHANGES }, (_, n) => `change ${n}`),
        'in their order',
      );
    }
    const [first] = subscribed;
    const verify = createVerify({ issuer: url, subscription: first?.uid ?? '', secret: first?.secret ?? '' });
    const own = changes.find(({ attributes }) => attributes.chainguarddev1subscription === first?.uid);
    await verify(own ?? assert.fail());
  });
});
