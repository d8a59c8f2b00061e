import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRateLimiter } from './rate-limiter.ts';

function limiterAt(perSecond: number, burstSeconds: number, capacity = 100) {
  const time = { now: 1_000_000 };
  return { time, limiter: createRateLimiter({ perSecond, burstSeconds, capacity, clock: () => time.now }) };
}

test('a full budget is the burst, and it refills at the rate', () => {
  const { time, limiter } = limiterAt(10, 2);
  for (let i = 0; i < 20; i++) assert.equal(limiter.spend('a'), 0, String(i));
  assert.equal(Math.round(limiter.spend('a')), 100);
  assert.equal(limiter.spend('b'), 0);
  time.now += 100;
  assert.equal(limiter.spend('a'), 0);
  assert.ok(limiter.spend('a') > 0);
  time.now += 60_000;
  for (let i = 0; i < 20; i++) assert.equal(limiter.spend('a'), 0, String(i));
});

test('a refused request spends nothing, a charge always does', () => {
  const { limiter } = limiterAt(1, 10);
  assert.ok(limiter.spend('a', 11) > 0);
  assert.equal(limiter.delay('a', 10), 0);
  for (let i = 0; i < 5; i++) limiter.charge('a', 10);
  // Charges beyond the budget do not lock the key out for longer than it takes to refill.
  assert.ok(limiter.delay('a') <= 11_000);
});

test('a clock that is set back delays by one window at most', () => {
  const { time, limiter } = limiterAt(10, 2);
  for (let i = 0; i < 20; i++) limiter.spend('a');
  time.now -= 3_600_000;
  assert.ok(limiter.delay('a') <= 2_100);
});

test('the least recently used keys are forgotten', () => {
  const { limiter } = limiterAt(1, 1, 10);
  for (let i = 0; i < 1_000; i++) assert.equal(limiter.spend(String(i)), 0);
  assert.equal(limiter.spend('0'), 0);
  assert.ok(limiter.spend('999') > 0);
});

test('over any time, no more is spent than burst and rate allow, and a client that waits is served', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ wait: fc.nat(500), cost: fc.integer({ min: 1, max: 5 }) })), (steps) => {
      const { time, limiter } = limiterAt(10, 2);
      const start = time.now;
      let spent = 0;
      for (const { wait, cost } of steps) {
        time.now += wait;
        const delay = limiter.spend('a', cost);
        if (delay === 0) spent += cost;
        assert.ok(spent <= 20 + (10 * (time.now - start)) / 1000 + 1e-6);
        if (delay > 0) {
          time.now += Math.ceil(delay);
          assert.equal(limiter.spend('a', cost), 0);
          spent += cost;
        }
      }
    }),
  );
});
