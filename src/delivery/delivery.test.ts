import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { until } from '../../test/support/eventually.ts';
import { startSink, type TestSink } from '../../test/support/sink.ts';
import { newUid, parentOf, ROOT } from '../base/uid.ts';
import { dropSink } from '../domains/events/sink-rows.ts';
import type { Store } from '../store/store.ts';
import { changeIn, changesIn, deliveriesTo, deliveryOn, START, subscribeTo } from './delivery.testing.ts';
import { type Delivery, SINK_DISABLED } from './delivery.ts';
import { prune } from './prune.ts';
import { claim } from './queue.ts';

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
      sink.answer = undefined;
      sink.received.length = 0;
      now = START;
    });

    const start = (options: Parameters<typeof deliveryOn>[2] = {}): Delivery => {
      const delivery = deliveryOn(store, () => now, options);
      running.push(delivery);
      return delivery;
    };
    const answerWith = (status: number, headers: Record<string, string> = {}) => {
      sink.answer = (_, response) => {
        response.writeHead(status, headers).end();
        return true;
      };
    };
    const attempts = (count: number) =>
      until(
        async () => sink.received.length,
        (received) => received >= count,
      );
    /** Waits until the deliveries to a subscription are so. */
    const settled = (uid: string, ...states: string[]) =>
      until(
        () => deliveriesTo(store, uid),
        (found) => found.map(({ state, attempts: n }) => `${state} ${n}`).join() === states.join(),
      );

    test('an event is sent by the schedule, to its end', async () => {
      const uid = await subscribeTo(store, sink.url);
      answerWith(500);
      await changeIn(store, parentOf(uid), now);
      const delivery = start();
      for (const [n, wait] of [5_000, 300_000, 0].entries()) {
        const [found] = await settled(uid, wait === 0 ? 'failed 3' : `pending ${n + 1}`);
        assert.equal(found?.due, wait === 0 ? null : now + wait);
        assert.equal(found?.error, 'it answered with status 500');
        now += wait;
        delivery.wake();
      }
      assert.equal(sink.received.length, 3);
      const ids = new Set(sink.received.map(({ headers }) => headers['webhook-id']));
      assert.equal(ids.size, 1);
    });

    test('a sink that asks for patience is left alone until then, with everything', async () => {
      const uid = await subscribeTo(store, sink.url);
      answerWith(429, { 'retry-after': '60' });
      const group = parentOf(uid);
      for (const subject of ['a', 'b', 'c']) await changeIn(store, group, now, subject);
      const delivery = start();
      const [first] = await settled(uid, 'pending 1', 'pending 0', 'pending 0');
      assert.equal(first?.due, now + MINUTE);
      sink.answer = undefined;
      await changeIn(store, group, now, 'd');
      now += MINUTE - 1;
      delivery.wake();
      await settled(uid, 'pending 1', 'pending 0', 'pending 0', 'pending 0');
      now += 1;
      delivery.wake();
      await settled(uid, 'delivered 2', 'delivered 1', 'delivered 1', 'delivered 1');
      assert.deepEqual(
        sink.received.map(({ attributes }) => attributes.subject),
        ['a', 'a', 'b', 'c', 'd'],
      );
    });

    test('a dead sink costs few attempts, and what waits loses none of its own', async () => {
      const uid = await subscribeTo(store, sink.url);
      answerWith(503);
      await changesIn(store, parentOf(uid), now, 20);
      start();
      await until(
        async () => store.reader.get<{ failures: number; lease: string | null }>('SELECT failures, lease FROM sink'),
        (row) => row?.failures === 5 && row.lease === null,
      );
      const found = await deliveriesTo(store, uid);
      assert.equal(found.filter(({ attempts: n }) => n === 0).length, 15);
      assert.equal(sink.received.length, 5);
    });

    test('a sink that fails for five days is disabled, which is an event, and then nothing waits for it', async () => {
      const group = newUid(ROOT);
      const witness = await startSink();
      try {
        await subscribeTo(store, witness.url, group);
        const uid = await subscribeTo(store, sink.url, newUid(group));
        answerWith(500);
        await changeIn(store, parentOf(uid), now);
        const delivery = start();
        await settled(uid, 'pending 1');
        now += 5 * DAY;
        delivery.wake();
        const told = await until(
          async () => witness.received.find(({ attributes }) => attributes.type === SINK_DISABLED),
          (request) => request !== undefined,
        );
        assert.equal(told?.attributes.subject, uid);
        assert.equal(JSON.parse(told?.body ?? '').body.state, 'SINK_STATE_DISABLED');
        await changeIn(store, parentOf(uid), now, 'later');
        delivery.wake();
        await until(
          async () => witness.received.at(-1)?.attributes.subject,
          (subject) => subject === 'later',
        );
        assert.equal((await deliveriesTo(store, uid)).length, 1);
      } finally {
        await witness.close();
      }
    });

    test('dead sinks delay no other, and stopping does not wait for them for long', async () => {
      const dead = await startSink();
      dead.answer = () => true;
      const group = newUid(ROOT);
      for (let n = 0; n < 100; n++) await subscribeTo(store, dead.url, group);
      const uid = await subscribeTo(store, sink.url);
      await changesIn(store, group, now, 3);
      const delivery = start({ timeoutMs: 60_000 });
      await until(
        async () => dead.received.length,
        (received) => received === 100,
      );
      await changesIn(store, parentOf(uid), now, 60);
      delivery.wake();
      await attempts(60);
      assert.equal(dead.received.length, 100);
      await delivery.stop();
      await dead.close();
      const leases = 'SELECT count(*) AS n FROM sink WHERE lease IS NOT NULL';
      assert.equal((await store.reader.get<{ n: number }>(leases))?.n, 0);
    });

    test('what a server held that is gone is taken over when its lease ends', async () => {
      const uid = await subscribeTo(store, sink.url);
      await changeIn(store, parentOf(uid), now);
      const gone = start();
      await settled(uid, 'delivered 1');
      await gone.stop();
      await changeIn(store, parentOf(uid), now, 'next');
      await store.write((tx) => tx.run('UPDATE sink SET due = $1', now));
      assert.equal((await claim(store, { working: 1, failing: 0 }, now, 6_000)).length, 1);
      const delivery = start();
      await settled(uid, 'delivered 1', 'pending 0');
      now += 5_999;
      delivery.wake();
      await settled(uid, 'delivered 1', 'pending 0');
      now += 1;
      delivery.wake();
      await settled(uid, 'delivered 1', 'delivered 1');
    });

    test('a server that stops hands back what it has not sent', async () => {
      const uid = await subscribeTo(store, sink.url);
      await changesIn(store, parentOf(uid), now, 3);
      let release = (): void => {};
      sink.answer = (_, response) => {
        release = () => void response.writeHead(204).end();
        return true;
      };
      const delivery = start();
      await attempts(1);
      const stopped = delivery.stop();
      release();
      await stopped;
      await settled(uid, 'delivered 1', 'pending 0', 'pending 0');
      const row = await store.reader.get<{ lease: string | null; due: number }>('SELECT lease, due FROM sink');
      assert.deepEqual({ ...row }, { lease: null, due: now });
    });

    test('what is deleted while it is sent to gets nothing more', async () => {
      const uid = await subscribeTo(store, sink.url);
      await changesIn(store, parentOf(uid), now, 3);
      const releases: (() => void)[] = [];
      sink.answer = (_, response) => {
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

    test('old events and deliveries go, and no others', async () => {
      const uid = await subscribeTo(store, sink.url);
      const group = parentOf(uid);
      await changesIn(store, group, now, 700);
      await changeIn(store, newUid(ROOT), now, 'nobody hears it');
      const delivery = start();
      const count = async (table: string) =>
        (await store.reader.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`))?.n;
      await until(
        async () => (await deliveriesTo(store, uid)).filter(({ state }) => state === 'delivered').length,
        (n) => n === 700,
      );
      now += DAY;
      await changeIn(store, group, now, 'the last');
      delivery.wake();
      await attempts(701);
      await delivery.stop();
      const never = new AbortController().signal;
      await prune(store, now, 30 * DAY, never);
      assert.deepEqual([await count('delivery'), await count('outbox')], [701, 701]);
      await prune(store, now + 29 * DAY, 30 * DAY, never);
      assert.deepEqual([await count('delivery'), await count('outbox')], [1, 1]);
    });
  });
}
