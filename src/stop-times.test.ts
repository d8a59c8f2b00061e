import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stopLimitMs, stopTimesOf } from './stop-times.ts';

const loopback = { host: '127.0.0.1', port: 8080 };
const everywhere = { host: '0.0.0.0', port: 8080 };

test('by default only a server that other machines can reach drains', () => {
  assert.equal(stopTimesOf({ drain: undefined, listen: loopback }).drainMs, 0);
  assert.equal(stopTimesOf({ drain: undefined, listen: everywhere }).drainMs, 5_000);
  assert.equal(stopTimesOf({ drain: 7_000, listen: loopback }).drainMs, 7_000);
  assert.equal(stopTimesOf({ drain: 0, listen: everywhere }).idleMs, 0);
});

test('the default limit fits into the 30 s that Kubernetes waits', () => {
  assert.equal(stopLimitMs(stopTimesOf({ drain: undefined, listen: everywhere })), 28_500);
});
