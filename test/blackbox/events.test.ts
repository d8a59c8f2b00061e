import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { newUid, parseUid } from '../../src/base/uid.ts';
import { SubscriptionsService } from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  DeliveriesService,
  type Delivery,
  DeliveryState,
} from '../../src/contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { SinkState, SinksService } from '../../src/contract/gen/wharfinger/events/v1/sinks_pb.js';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { assertNotStored, capturedLog } from '../support/inspect.ts';
import { pollUntil } from '../support/poll-until.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { createDeliveryVerifier, startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { type CallError, type Client, wires } from '../support/wires.ts';

const { createSubscription, deleteSubscription, getSubscription, listSubscriptions } = SubscriptionsService.method;
const { createGroup, deleteGroup, updateGroup } = GroupsService.method;
const { getDelivery, listDeliveries, replayDelivery, replayDeliveries } = DeliveriesService.method;
const { getSink, enableSink, rotateSecret } = SinksService.method;

const env = { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_DELIVERY_SCHEDULE: '0s,1m,2m' };
const MINUTE = 60_000;

/** Asserts that an error names only this field. */
const about = (field: string) => (error: CallError) => assert.deepEqual(error.fields, [field]);

for (const database of databases) {
  describe(`events on ${database.name}`, () => {
    const { log, lines } = capturedLog();
    const secrets: string[] = [];
    const sinks: TestSink[] = [];
    let server: TestServer;
    let store: Store;
    // The tests of each wire advance the clock by a minute. Receivers refuse timestamps from the future.
    let skew = -2 * MINUTE;
    before(async () => {
      server = await startTestServer(database, { env, log, clock: () => Date.now() + skew });
      store = await openStore(server.dataLocation);
    });
    after(async () => {
      for (const sink of sinks) await sink.close();
      await store.close();
      await server.remove();
    });

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => {
        let api: Client;
        let group: string;
        let named = 0;
        before(async () => {
          api = wire.connect(server.url, server.token);
          group = await newGroup(server.organization);
        });
        after(() => api.close());

        const newGroup = async (parent: string): Promise<string> =>
          (await api.call(createGroup, { parent, group: { name: `${wire.name.toLowerCase()} ${++named}` } })).uid;
        const newSink = async (): Promise<TestSink> => {
          const sink = await startSink();
          sinks.push(sink);
          return sink;
        };
        const deliveries = async (parent: string): Promise<Delivery[]> =>
          (await api.call(listDeliveries, { parent })).deliveries;
        const settled = (parent: string, isRight: (delivery: Delivery) => boolean) =>
          pollUntil(
            () => deliveries(parent),
            (found) => found.length > 0 && found.every(isRight),
          );
        const subscribed = async (parent: string, sink: string) => {
          const subscription = await subscribe(wire.name, server, parent, sink);
          secrets.push(subscription.secret);
          return subscription;
        };

        test('a subscription receives the events of its group and descendants while it exists', async () => {
          const sink = await newSink();
          await api.call(updateGroup, { group: { uid: group, description: 'too early' } });
          const { uid, secret } = await subscribed(group, sink.url);
          assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
          const verify = createDeliveryVerifier({ issuer: server.url, subscription: uid, secret });

          const child = await newGroup(group);
          await newGroup(server.organization);
          await api.call(updateGroup, { group: { uid: child, description: 'söme text' } });
          await api.call(deleteGroup, { uid: child });
          const [, created, updated, deleted] = await pollUntil(
            async () => sink.received,
            (received) => received.length === 4,
          );
          assert.ok(created && updated && deleted);
          assert.deepEqual(
            sink.received.map(({ attributes }) => attributes.type),
            [
              'dev.chainguard.api.events.subscription.created.v1',
              'dev.chainguard.api.iam.group.created.v1',
              'dev.chainguard.api.iam.group.updated.v1',
              'dev.chainguard.api.iam.group.deleted.v1',
            ],
          );
          for (const request of sink.received) await verify(request);
          const event = await verify(updated);
          assert.equal(event.subject, child);
          assert.equal(event.group, child);
          assert.equal(event.audience, 'customer');
          assert.equal(event.bodytype, 'chainguard.platform.iam.Group');
          assert.equal(event.source, `${server.url}/iam/v2/groups`);
          assert.equal(event.data?.body?.description, 'söme text');
          assert.match(event.data?.actor?.subject ?? '', /^[0-9a-f]{40}/);
          assert.equal((await verify(deleted)).group, group);

          await api.call(deleteSubscription, { uid });
          const other = await newSink();
          await subscribed(group, other.url);
          await pollUntil(
            async () => other.received,
            (received) => received.length === 1,
          );
          assert.equal(
            sink.received.length,
            4,
            'a deleted subscription receives nothing, not even the event of its own deletion',
          );
        });

        test('subscriptions can be read and listed, and are created only for a valid sink URL', async () => {
          const parent = await newGroup(group);
          const { uid } = await subscribed(parent, 'https://sink.invalid/hook');
          assert.equal((await api.call(getSubscription, { uid })).sink, 'https://sink.invalid/hook');
          const { subscriptions, totalCount } = await api.call(listSubscriptions, { uidp: { childrenOf: parent } });
          assert.deepEqual([subscriptions.map((one) => one.uid), totalCount], [[uid], 1n]);
          const bad = [
            '',
            'example.com',
            'ftp://example.com',
            'http://example.com',
            'https://u:p@example.com',
            'https://x/#y',
          ];
          for (const sink of bad) {
            await rejects(
              api.call(createSubscription, { parent, subscription: { sink } }),
              Code.INVALID_ARGUMENT,
              about('sink'),
            );
          }
          await rejects(api.call(deleteGroup, { uid: parent }), Code.FAILED_PRECONDITION);
          // Disabled, so that nothing is sent to them.
          const more = `INSERT INTO sink (subscription, parent, since, rest, failures, disabled)
            VALUES ($1, $2, 0, 0, 0, 1)`;
          await store.write(async (tx) => {
            for (let n = 1; n < 100; n++) await tx.run(more, newUid(parseUid('parent', parent)), parent);
          });
          const one = { parent, subscription: { sink: 'https://sink.invalid/' } };
          await rejects(api.call(createSubscription, one), Code.FAILED_PRECONDITION);
        });

        test('a failed delivery is retried with the same id, before later events of its subject', async () => {
          const sink = await newSink();
          const parent = await newGroup(group);
          const child = await newGroup(parent);
          const { uid } = await subscribed(parent, sink.url);
          await settled(uid, ({ state }) => state === DeliveryState.DELIVERED);
          let fails = 1;
          sink.handler = ({ attributes }, response) => {
            if (attributes.subject !== child || fails-- <= 0) return false;
            response.writeHead(503).end('x'.repeat(200_000));
            return true;
          };
          sink.received.length = 0;
          await api.call(updateGroup, { group: { uid: child, description: 'one' } });
          await api.call(updateGroup, { group: { uid: child, description: 'two' } });
          await api.call(updateGroup, { group: { uid: parent, description: 'three' } });
          const [third, second, first] = await pollUntil(
            () => deliveries(uid),
            // Not the event of the subscription itself, which was delivered before.
            ([latest]) => latest?.subject === parent && latest.state === DeliveryState.DELIVERED,
          );
          assert.equal(third?.attempts, 1);
          assert.deepEqual([second?.state, second?.attempts], [DeliveryState.PENDING, 0]);
          assert.deepEqual([first?.state, first?.attempts, first?.status], [DeliveryState.PENDING, 1, 503]);
          assert.match(first?.error ?? '', /503/);
          assert.equal((await api.call(getSink, { uid })).state, SinkState.WORKING);

          skew += MINUTE;
          await settled(uid, ({ state }) => state === DeliveryState.DELIVERED);
          const texts = sink.received.map(({ body }) => JSON.parse(body).body.description);
          assert.deepEqual(texts, ['one', 'three', 'one', 'two']);
          const [one, , again] = sink.received.map(({ headers }) => headers['ce-id']);
          assert.equal(one, again);
        });

        test('a sink that responds with 410 is disabled with an event, and can be enabled again', async () => {
          const [sink, witness] = [await newSink(), await newSink()];
          const parent = await newGroup(group);
          await subscribed(parent, witness.url);
          const child = await newGroup(parent);
          sink.handler = (_, response) => {
            response.writeHead(410).end();
            return true;
          };
          const { uid } = await subscribed(child, sink.url);
          const disabledEvent = await pollUntil(
            async () => witness.received.find(({ attributes }) => attributes.type?.includes('disabled')),
            (found) => found !== undefined,
          );
          assert.equal(disabledEvent?.attributes.subject, uid);
          const { state, reason } = await api.call(getSink, { uid });
          assert.deepEqual([state, reason], [SinkState.DISABLED, 'it answered 410 Gone']);
          await api.call(updateGroup, { group: { uid: child, description: 'not heard' } });
          await pollUntil(
            async () => witness.received.at(-1)?.attributes.type ?? '',
            (type) => type.endsWith('group.updated.v1'),
          );
          assert.equal(sink.received.length, 1);

          sink.handler = undefined;
          assert.equal((await api.call(enableSink, { uid })).state, SinkState.WORKING);
          await api.call(updateGroup, { group: { uid: child, description: 'heard' } });
          await pollUntil(
            async () => sink.received,
            (received) => received.length === 2,
          );
        });

        test('deliveries are listed in pages and can be replayed', async () => {
          const sink = await newSink();
          const parent = await newGroup(group);
          const { uid } = await subscribed(parent, sink.url);
          const before = Date.now() + skew;
          for (let i = 0; i < 4; i++) await api.call(updateGroup, { group: { uid: parent, description: `${i}` } });
          await pollUntil(
            () => deliveries(parent),
            (found) => found.length === 5 && found.every(({ state }) => state === DeliveryState.DELIVERED),
          );
          const seen: string[] = [];
          let pageToken = '';
          do {
            const page = await api.call(listDeliveries, { parent: uid, pageSize: 2, pageToken });
            seen.push(...page.deliveries.map((delivery) => delivery.uid));
            pageToken = page.nextPageToken;
          } while (pageToken !== '');
          assert.deepEqual(seen, [...new Set(seen)].sort().reverse());
          assert.equal(seen.length, 5);
          const failed = { parent, state: DeliveryState.FAILED };
          assert.deepEqual((await api.call(listDeliveries, failed)).deliveries, []);

          const latest = await api.call(getDelivery, { uid: seen[0] ?? '' });
          assert.deepEqual([latest.attempts, latest.status], [1, 204]);
          assert.equal(latest.eventId, sink.received[4]?.attributes.id);
          await api.call(replayDelivery, { uid: latest.uid });
          await pollUntil(
            async () => sink.received,
            (received) => received.length === 6,
          );
          assert.equal(sink.received[5]?.attributes.id, latest.eventId);
          await settled(uid, ({ state }) => state === DeliveryState.DELIVERED);

          const { replayed, nextPageToken } = await api.call(replayDeliveries, {
            parent,
            since: timestampFromMs(before),
          });
          assert.deepEqual([replayed, nextPageToken], [4, '']);
          await pollUntil(
            async () => sink.received,
            (received) => received.length === 10,
          );
          const ids = sink.received.map(({ attributes }) => attributes.id);
          assert.deepEqual(ids.slice(6), ids.slice(1, 5), 'in order');

          const missing = `${uid}/${'0'.repeat(16)}`;
          await rejects(api.call(getDelivery, { uid: missing }), Code.NOT_FOUND);
          await rejects(api.call(replayDelivery, { uid: missing }), Code.NOT_FOUND);
          await rejects(api.call(replayDeliveries, { parent }), Code.INVALID_ARGUMENT, about('since'));
          await rejects(
            api.call(listDeliveries, { parent, pageToken: 'x' }),
            Code.INVALID_ARGUMENT,
            about('page_token'),
          );
          await rejects(api.call(listDeliveries, { parent, state: 9 as DeliveryState }), Code.INVALID_ARGUMENT);
        });

        test('the new and the previous secret are both valid during the overlap', async () => {
          const sink = await newSink();
          const parent = await newGroup(group);
          const { uid, secret } = await subscribed(parent, sink.url);
          const rotated = await api.call(rotateSecret, { uid, overlap: durationFromMs(60 * MINUTE) });
          secrets.push(rotated.secret);
          assert.notEqual(rotated.secret, secret);
          const expected = { issuer: server.url, subscription: uid };
          const verifyOld = createDeliveryVerifier({ ...expected, secret });
          const verifyNew = createDeliveryVerifier({ ...expected, secret: rotated.secret });
          const next = async () => {
            const count = sink.received.length;
            await api.call(updateGroup, { group: { uid: parent, description: `${count}` } });
            const received = await pollUntil(
              async () => sink.received,
              (all) => all.length > count && all.at(-1)?.attributes.type?.includes('updated') === true,
            );
            return received.at(-1) ?? assert.fail();
          };
          const during = await next();
          await verifyOld(during);
          await verifyNew(during);
          await settled(uid, ({ state }) => state === DeliveryState.DELIVERED);
          await rejects(
            api.call(rotateSecret, { uid, overlap: durationFromMs(-1) }),
            Code.INVALID_ARGUMENT,
            about('overlap'),
          );
          await api.call(rotateSecret, { uid, overlap: durationFromMs(0) });
          await assert.rejects(verifyOld(await next()));
        });
      });
    }

    test('no secret is stored in plaintext or logged', async () => {
      assert.ok(secrets.length > 10 && lines.length > 0);
      await assertNotStored(store.reader, secrets);
      for (const secret of secrets) assert.ok(!lines.join('').includes(secret));
    });

    test('the listing index matches the stored resources', () => assertConsistent(store.reader));
  });
}
