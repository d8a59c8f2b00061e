import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextAttempt, readRetryAfter, restUntil } from './retry-schedule.ts';

const MINUTE = 60_000;
const patience = { schedule: [0, 5_000, 5 * MINUTE, 30 * MINUTE], giveUpMs: 0 };

test('attempts follow the schedule to its end', () => {
  const times = [1, 2, 3, 4].map((attempts) => nextAttempt(patience, attempts, 1000));
  assert.deepEqual(times, [6_000, 1000 + 5 * MINUTE, 1000 + 30 * MINUTE, undefined]);
});

test('a sink that fails again and again gets a rest, of five minutes at most', () => {
  const rests = [1, 4, 5, 6, 7, 100].map((failures) => restUntil(patience, failures, 1000));
  assert.deepEqual(rests, [0, 0, 6_000, 1000 + 5 * MINUTE, 1000 + 5 * MINUTE, 1000 + 5 * MINUTE]);
});

test('Retry-After is a number of seconds or a date, of a day at most', () => {
  const now = Date.UTC(2026, 0, 1);
  assert.equal(readRetryAfter('120', now), now + 2 * MINUTE);
  assert.equal(readRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now), now + MINUTE);
  assert.equal(readRetryAfter('999999999', now), now + 24 * 60 * MINUTE);
  for (const nonsense of [undefined, '', '-1', 'soon', '1e9', '0', 'Wed, 31 Dec 2025 00:00:00 GMT']) {
    assert.equal(readRetryAfter(nonsense, now), 0, nonsense);
  }
});
