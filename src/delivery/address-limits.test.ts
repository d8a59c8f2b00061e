import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { newUid, ROOT } from '../base/uid.ts';
import type { Store } from '../store/store.ts';
import {
  type AddressLimits,
  type AddressUse,
  createReservations,
  type Reservation,
  type SinkAddress,
  settleReservation,
} from './address-limits.ts';
import { START } from './delivery.testing.ts';

const limits: AddressLimits = { rate: 5, newSinkIntervalMs: 10_000 };
const BURST = 10 * limits.rate;
const LEASE_MS = 45_000;

/** A generator of numbers below `bound`, the same ones in every run. */
function randomNumbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % bound;
  };
}

for (const database of databases) {
  describe(`limits of an address on ${database.name}`, () => {
    let store: Store;
    before(async () => {
      store = await temporaryStore(database);
    });
    after(() => store.close());

    const newAddress = (): SinkAddress => ({ organization: newUid(ROOT), address: 'sink.example.com' });
    const reserve = (at: SinkAddress, now: number, wanted: number, hasAccepted = true) =>
      store.write((tx) => createReservations(tx, limits, now).reserve(at, { hasAccepted, wanted, leaseMs: LEASE_MS }));
    const settle = (at: SinkAddress, now: number, reservation: Reservation, use: Partial<AddressUse>) =>
      store.write((tx) =>
        settleReservation(tx, at, reservation, { sent: 1, hasAccepted: false, hasFailed: false, ...use }, limits, now),
      );

    test('no time has more requests than the burst and the rate permit, and what is not sent is not lost', async () => {
      const random = randomNumbers(7);
      const at = newAddress();
      const sentAt: number[] = [];
      let now = START;
      for (let step = 0; step < 300; step++) {
        const reservation = await reserve(at, now, 1 + random(20));
        if ('until' in reservation) {
          assert.ok(reservation.until > now);
          now = reservation.until;
          continue;
        }
        const sent = random(reservation.requests + 1);
        await settle(at, now, reservation, { sent, hasAccepted: sent > 0 });
        for (let n = 0; n < sent; n++) sentAt.push(now);
        now += random(3) * 100;
      }
      for (const [first, from] of sentAt.entries()) {
        for (const [last, to] of sentAt.entries()) {
          if (last < first) continue;
          const permitted = BURST + ((to - from) / 1000) * limits.rate;
          assert.ok(last - first + 1 <= permitted + 1, `${last - first + 1} requests in ${to - from} ms`);
        }
      }
      const used = (now - START) / 1000;
      assert.ok(sentAt.length > used * limits.rate * 0.8, `${sentAt.length} requests in ${used} s`);
    });

    test('an address that has accepted nothing gets one request at a time, later and later', async () => {
      const at = newAddress();
      let now = START;
      for (const seconds of [10, 20, 40, 80, 160, 300, 300]) {
        const reservation = await reserve(at, now, 20, false);
        assert.deepEqual(reservation, { requests: 1, isNewAddress: true });
        assert.deepEqual(await reserve(at, now, 20, false), { until: now + LEASE_MS });
        await settle(at, now, reservation as Reservation, { hasFailed: true });
        assert.deepEqual(await reserve(at, now, 20, false), { until: now + seconds * 1000 });
        now += seconds * 1000;
      }
      const reservation = (await reserve(at, now, 20, false)) as Reservation;
      assert.equal(await settle(at, now, reservation, { hasAccepted: true }), true);
      assert.deepEqual(await reserve(at, now, 20, false), { requests: 1, isNewAddress: false });
      assert.deepEqual(await reserve(at, now, 20), { requests: 20, isNewAddress: false });
    });

    test('an organization cannot reach many new addresses at once by many host names', async () => {
      const organization = newUid(ROOT);
      let reached = 0;
      for (let n = 0; n < 30; n++) {
        const reservation = await reserve({ organization, address: `${n}.example.com` }, START, 1, false);
        if ('requests' in reservation) reached++;
      }
      assert.equal(reached, 10);
      assert.ok('requests' in (await reserve(newAddress(), START, 1, false)), 'other organizations are not delayed');
      const later = await reserve({ organization, address: '30.example.com' }, START + 1_000, 1, false);
      assert.ok('requests' in later);
    });

    test('an organization does not use up the requests of another one at the same address', async () => {
      const [first, second] = [newAddress(), newAddress()];
      assert.deepEqual(await reserve(first, START, 1_000), { requests: BURST, isNewAddress: false });
      assert.ok('until' in (await reserve(first, START, 1)));
      assert.deepEqual(await reserve(second, START, 1), { requests: 1, isNewAddress: false });
    });
  });
}
