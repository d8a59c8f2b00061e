import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { pollUntil } from '../../test/support/poll-until.ts';
import { startSink, type TestSink } from '../../test/support/sink.ts';
import { newUid, parentOf, ROOT } from '../base/uid.ts';
import { dropSink } from '../domains/events/sink-rows.ts';
import type { Store } from '../store/store.ts';
import { appendChange, appendChanges, deliveriesTo, deliveryOn, START, subscribeTo } from './delivery.testing.ts';
import { type Delivery, SINK_DISABLED } from './delivery.ts';
import { prune } from './prune.ts';
import { leaseDueSinks } from './queue.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

for (const database of databases) {
  describe(`delivery on ${database.name}`, () => {
    let store: Store;
    let sink: TestSink;
    let now: number;
    const running: Delivery[] = [];
    before(async () => {
      store = await temporaryStore(database);
      sink = await startSink();
    });
    after(async () => {
      for (const delivery of running) await delivery.stop();
      await sink.close();
      await store.close();
    });
    beforeEach(async () => {
      for (const delivery of running.splice(0)) await delivery.stop();
      await store.write(async (tx) => {
        for (const table of ['sink', 'delivery', 'outbox']) await tx.run(`DELETE FROM ${table}`);
      });
      sink.handler = undefined;
      sink.received.length = 0;
      now = START;
    });

    const start = (options: Parameters<typeof deliveryOn>[2] = {}): Delivery => {
      const delivery = deliveryOn(store, () => now, options);
      running.push(delivery);
      return delivery;
    };
    const respondWith = (status: number, headers: Record<string, string> = {}) => {
      sink.handler = (_, response) => {
        response.writeHead(status, headers).end();
        return true;
      };
    };
    const attempts = (count: number) =>
      pollUntil(
        async () => sink.received.length,
        (received) => received >= count,
      );
    /** Waits until the deliveries to a subscription have these states and numbers of attempts. */
    const deliveriesAre = (uid: string, ...states: string[]) =>
      pollUntil(
        () => deliveriesTo(store, uid),
        (found) => found.map(({ state, attempts: n }) => `${state} ${n}`).join() === states.join(),
      );

    test('a delivery is retried by the schedule until its end', async () => {
      const uid = await subscribeTo(store, sink.url);
      respondWith(500);
      await appendChange(store, parentOf(uid), now);
      const delivery = start();
      for (const [n, wait] of [5_000, 300_000, 0].entries()) {
        const [found] = await deliveriesAre(uid, wait === 0 ? 'failed 3' : `pending ${n + 1}`);
        assert.equal(found?.due, wait === 0 ? null : now + wait);
        assert.equal(found?.error, 'it answered with status 500');
        now += wait;
        delivery.wake();
      }
      assert.equal(sink.received.length, 3);
      const ids = new Set(sink.received.map(({ headers }) => headers['webhook-id']));
      assert.equal(ids.size, 1);
    });

    test('no delivery is sent to a sink before the time of its Retry-After', async () => {
      const uid = await subscribeTo(store, sink.url);
      respondWith(429, { 'retry-after': '60' });
      const group = parentOf(uid);
      for (const subject of ['a', 'b', 'c']) await appendChange(store, group, now, subject);
      const delivery = start();
      const [first] = await deliveriesAre(uid, 'pending 1', 'pending 0', 'pending 0');
      assert.equal(first?.due, now + MINUTE);
      sink.handler = undefined;
      await appendChange(store, group, now, 'd');
      now += MINUTE - 1;
      delivery.wake();
      await deliveriesAre(uid, 'pending 1', 'pending 0', 'pending 0', 'pending 0');
      now += 1;
      delivery.wake();
      await deliveriesAre(uid, 'delivered 2', 'delivered 1', 'delivered 1', 'delivered 1');
      assert.deepEqual(
        sink.received.map(({ attributes }) => attributes.subject),
        ['a', 'a', 'b', 'c', 'd'],
      );
    });

    test('a sink that is down gets few attempts, and waiting deliveries keep theirs', async () => {
      const uid = await subscribeTo(store, sink.url);
      respondWith(503);
      await appendChanges(store, parentOf(uid), now, 20);
      start();
      await pollUntil(
        async () => store.reader.get<{ failures: number; lease: string | null }>('SELECT failures, lease FROM sink'),
        (row) => row?.failures === 5 && row.lease === null,
      );
      const found = await deliveriesTo(store, uid);
      assert.equal(found.filter(({ attempts: n }) => n === 0).length, 15);
      assert.equal(sink.received.length, 5);
    });

    test('a sink that fails for five days is disabled, with an event, and gets no deliveries', async () => {
      const group = newUid(ROOT);
      const parentSink = await startSink();
      try {
        await subscribeTo(store, parentSink.url, group);
        const uid = await subscribeTo(store, sink.url, newUid(group));
        respondWith(500);
        await appendChange(store, parentOf(uid), now);
        const delivery = start();
        await deliveriesAre(uid, 'pending 1');
        now += 5 * DAY;
        delivery.wake();
        const announced = await pollUntil(
          async () => parentSink.received.find(({ attributes }) => attributes.type === SINK_DISABLED),
          (request) => request !== undefined,
        );
        assert.equal(announced?.attributes.subject, uid);
        assert.equal(JSON.parse(announced?.body ?? '').body.state, 'SINK_STATE_DISABLED');
        await appendChange(store, parentOf(uid), now, 'later');
        delivery.wake();
        await pollUntil(
          async () => parentSink.received.at(-1)?.attributes.subject,
          (subject) => subject === 'later',
        );
        assert.equal((await deliveriesTo(store, uid)).length, 1);
      } finally {
        await parentSink.close();
      }
    });

    test('sinks that do not respond delay no others, and stopping does not wait long for them', async () => {
      const hanging = await startSink();
      hanging.handler = () => true;
      const group = newUid(ROOT);
      for (let n = 0; n < 100; n++) await subscribeTo(store, hanging.url, group);
      const uid = await subscribeTo(store, sink.url);
      await appendChanges(store, group, now, 3);
      const delivery = start({ timeoutMs: 60_000 });
      await pollUntil(
        async () => hanging.received.length,
        (received) => received === 100,
      );
      await appendChanges(store, parentOf(uid), now, 60);
      delivery.wake();
      await attempts(60);
      assert.equal(hanging.received.length, 100);
      await delivery.stop();
      await hanging.close();
      const leases = 'SELECT count(*) AS n FROM sink WHERE lease IS NOT NULL';
      assert.equal((await store.reader.get<{ n: number }>(leases))?.n, 0);
    });

    test('deliveries of a server that was killed are sent when its lease expires', async () => {
      const uid = await subscribeTo(store, sink.url);
      await appendChange(store, parentOf(uid), now);
      const first = start();
      await deliveriesAre(uid, 'delivered 1');
      await first.stop();
      await appendChange(store, parentOf(uid), now, 'next');
      await store.write((tx) => tx.run('UPDATE sink SET due = $1', now));
      const capacity = { working: 1, failing: 0 };
      const limits = { rate: 1_000, newSinkIntervalMs: 0 };
      assert.equal((await leaseDueSinks(store, { capacity, limits, now, leaseMs: 6_000 })).length, 1);
      const delivery = start();
      await deliveriesAre(uid, 'delivered 1', 'pending 0');
      now += 5_999;
      delivery.wake();
      await deliveriesAre(uid, 'delivered 1', 'pending 0');
      now += 1;
      delivery.wake();
      await deliveriesAre(uid, 'delivered 1', 'delivered 1');
    });

    test('a server that stops ends its leases, and keeps unsent deliveries', async () => {
      const uid = await subscribeTo(store, sink.url);
      await appendChanges(store, parentOf(uid), now, 3);
      let release = (): void => {};
      sink.handler = (_, response) => {
        release = () => void response.writeHead(204).end();
        return true;
      };
      const delivery = start();
      await attempts(1);
      const stopped = delivery.stop();
      release();
      await stopped;
      await deliveriesAre(uid, 'delivered 1', 'pending 0', 'pending 0');
      const row = await store.reader.get<{ lease: string | null; due: number }>('SELECT lease, due FROM sink');
      assert.deepEqual({ ...row }, { lease: null, due: now });
    });

    test('a subscription that is deleted meanwhile gets no more deliveries', async () => {
      const uid = await subscribeTo(store, sink.url);
      await appendChanges(store, parentOf(uid), now, 3);
      const releases: (() => void)[] = [];
      sink.handler = (_, response) => {
        releases.push(() => void response.writeHead(204).end());
        return true;
      };
      const delivery = start();
      await attempts(1);
      await store.write((tx) => dropSink(tx, uid));
      for (const release of releases) release();
      await delivery.stop();
      assert.equal(sink.received.length, 1);
    });

    test('old events and deliveries are deleted, and no others', async () => {
      const uid = await subscribeTo(store, sink.url);
      const group = parentOf(uid);
      await appendChanges(store, group, now, 700);
      await appendChange(store, newUid(ROOT), now, 'no subscriber');
      const delivery = start();
      const count = async (table: string) =>
        (await store.reader.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`))?.n;
      await pollUntil(
        async () => (await deliveriesTo(store, uid)).filter(({ state }) => state === 'delivered').length,
        (n) => n === 700,
      );
      // A poll that is still running would queue the last event with the time of its own start.
      await delivery.stop();
      now += DAY;
      await appendChange(store, group, now, 'the last');
      const restarted = start();
      await attempts(701);
      await restarted.stop();
      const never = new AbortController().signal;
      await prune(store, now, 30 * DAY, never);
      assert.deepEqual([await count('delivery'), await count('outbox')], [701, 701]);
      await prune(store, now + 29 * DAY, 30 * DAY, never);
      assert.deepEqual([await count('delivery'), await count('outbox')], [1, 1]);
    });
  });
}
