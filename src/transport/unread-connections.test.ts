import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { closeUnreadConnections } from './unread-connections.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** A connection with bytes that the operating system has not taken. */
function connection(written: number, queued: number) {
  const socket = {
    destroyed: false,
    _handle: { bytesWritten: written, writeQueueSize: queued },
    destroy() {
      socket.destroyed = true;
    },
  };
  return socket;
}

test('a connection is closed when its client takes nothing, and not when it takes a little or nothing waits', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['setInterval'] });
  const [stalled, slow, idle] = [connection(1_000, 500), connection(1_000, 500), connection(1_000, 0)];
  const open = [stalled, slow, idle] as unknown as Socket[];
  const timer = closeUnreadConnections(open, 1_000, silent);
  t.after(() => clearInterval(timer));
  for (let i = 0; i < 9; i++) {
    now += 100;
    slow._handle.writeQueueSize--;
    t.mock.timers.tick(100);
    assert.ok(!stalled.destroyed, `after ${now} ms`);
  }
  for (let i = 0; i < 3; i++) {
    now += 100;
    slow._handle.writeQueueSize--;
    t.mock.timers.tick(100);
  }
  assert.deepEqual(
    [stalled, slow, idle].map(({ destroyed }) => destroyed),
    [true, false, false],
  );
});
