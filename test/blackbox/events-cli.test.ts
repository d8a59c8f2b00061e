import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Result, runInProcess } from '../../src/cli/cli.testing.ts';
import { SubscriptionsService } from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { createDeliveryVerifier, startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { type Client, wires } from '../support/wires.ts';

const { createGroup, updateGroup } = GroupsService.method;
const { listSubscriptions } = SubscriptionsService.method;

describe('wharf events', () => {
  let server: TestServer;
  let api: Client;
  let sink: TestSink;
  before(async () => {
    const [database = assert.fail()] = databases;
    server = await startTestServer(database, {
      // Early retries, because the first attempt may come before the receiver listens.
      env: { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_DELIVERY_SCHEDULE: `0s${',50ms'.repeat(9)}${',2s'.repeat(10)}` },
    });
    api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
    sink = await startSink();
  });
  after(async () => {
    api.close();
    await server.remove();
    await sink.close();
  });

  const wharf = (...args: string[]): Promise<Result> =>
    runInProcess(['events', ...args], { WHARF_SERVER: server.url, WHARF_TOKEN: server.token });
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await wharf(...args, '-o', 'json');
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    return JSON.parse(stdout);
  };
  let groups = 0;
  const newGroup = async (): Promise<string> => {
    const group = { name: `group ${++groups}` };
    return (await api.call(createGroup, { parent: server.organization, group })).uid;
  };
  const arrivals = (count: number) =>
    pollUntil(
      async () => sink.received,
      (received) => received.length === count,
    );

  test('subscriptions can be created, and their deliveries listed, shown and replayed', async () => {
    const group = await newGroup();
    const { uid, secret } = await json('subscriptions', 'create', '--parent', group, '--sink', sink.url);
    const verify = createDeliveryVerifier({ issuer: server.url, subscription: uid, secret });
    const [first = assert.fail()] = await arrivals(1);
    await verify(first);
    const table = await pollUntil(
      () => wharf('deliveries', 'list', '--parent', group, '--state', 'delivered'),
      ({ stdout }) => stdout.includes('subscription.created.v1'),
    );
    assert.match(table.stdout, /^UID +STATE +EVENT +ATTEMPTS +STATUS/);

    const { deliveries } = await json('deliveries', 'list', '--parent', uid);
    const delivery = await json('deliveries', 'show', deliveries[0].uid);
    assert.equal(delivery.eventId, first.attributes.id);
    await json('deliveries', 'replay', delivery.uid);
    await arrivals(2);
    await pollUntil(
      () => json('deliveries', 'show', delivery.uid),
      ({ state }) => state === 'DELIVERY_STATE_DELIVERED',
    );
    assert.deepEqual(await json('replay', group, '--since', '1h'), { replayed: 1 });
    await arrivals(3);
    const none = await wharf('replay', uid, '--since', '2026-01-01', '--failed');
    assert.equal(none.stdout, '0 events will be sent again\n');
    const wrong = await wharf('replay', uid, '--since', 'yesterday');
    assert.equal(wrong.code, 2);

    assert.equal((await json('status', uid)).state, 'SINK_STATE_WORKING');
    assert.equal((await json('enable', uid)).state, 'SINK_STATE_WORKING');
    assert.match((await json('take-over', uid)).maker, /^[0-9a-f]{40}/);
    assert.equal((await json('handshake', uid)).handshake, 'HANDSHAKE_REQUIRED');
    assert.equal((await json('handshake', uid, '--none')).handshake, 'HANDSHAKE_NONE');
    const rotated = await json('rotate-secret', uid, '--overlap', '1h');
    assert.match(rotated.secret, /^whsec_/);
    assert.equal((await wharf('subscriptions', 'delete', uid)).code, 0);
  });

  test('listen subscribes, verifies and prints events, and deletes its subscription', async () => {
    const group = await newGroup();
    const listening = wharf('listen', '--group', group, '--count', '2');
    const subscribed = () => api.call(listSubscriptions, { uidp: { childrenOf: group } });
    await pollUntil(
      async () => (await subscribed()).subscriptions.length,
      (count) => count === 1,
    );
    await api.call(updateGroup, { group: { uid: group, description: 'hear, hear' } });
    const { code, stdout, stderr } = await listening;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /dev\.chainguard\.api\.iam\.group\.updated\.v1 {2}\(verified\)\n {2}subject {2}\w+/);
    assert.match(stdout, /"description": "hear, hear"/);
    assert.deepEqual((await subscribed()).subscriptions, []);
  });

  test('listen reports why an event cannot be verified', async () => {
    const port = await freePort();
    const listening = wharf(
      'listen',
      '--port',
      String(port),
      '--secret',
      'whsec_b3RoZXI=',
      '--count',
      '1',
      '-o',
      'json',
    );
    await subscribe('REST', server, await newGroup(), `http://127.0.0.1:${port}/`);
    const { stdout } = await listening;
    const { type, problems } = JSON.parse(stdout);
    assert.equal(type, 'dev.chainguard.api.events.subscription.created.v1');
    assert.deepEqual(problems, ['its webhook-signature does not match the secret']);
  });
});

/** Returns a port on which nothing listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
