import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoffUntil, nextAttempt, readRetryAfter } from './retry-schedule.ts';

const MINUTE = 60_000;
const policy = { schedule: [0, 5_000, 5 * MINUTE, 30 * MINUTE], giveUpMs: 0 };

test('attempts follow the schedule until its end', () => {
  const times = [1, 2, 3, 4].map((attempts) => nextAttempt(policy, attempts, 1000));
  assert.deepEqual(times, [6_000, 1000 + 5 * MINUTE, 1000 + 30 * MINUTE, undefined]);
});

test('repeated failures cause a backoff of at most five minutes', () => {
  const times = [1, 4, 5, 6, 7, 100].map((failures) => backoffUntil(policy, failures, 1000));
  assert.deepEqual(times, [0, 0, 6_000, 1000 + 5 * MINUTE, 1000 + 5 * MINUTE, 1000 + 5 * MINUTE]);
});

test('Retry-After is a number of seconds or a date, at most a day ahead', () => {
  const now = Date.UTC(2026, 0, 1);
  assert.equal(readRetryAfter('120', now), now + 2 * MINUTE);
  assert.equal(readRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now), now + MINUTE);
  assert.equal(readRetryAfter('999999999', now), now + 24 * 60 * MINUTE);
  for (const invalid of [undefined, '', '-1', 'soon', '1e9', '0', 'Wed, 31 Dec 2025 00:00:00 GMT']) {
    assert.equal(readRetryAfter(invalid, now), 0, invalid);
  }
});
