import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Arrival, watchArrival } from './body-timeout.ts';

const LIMIT_MS = 150;

/** Sends a body of three pieces, each after `pauseMs`, to a server that cuts off who is late, and answers what came. */
async function sendSlowly(t: TestContext, pauseMs: number, handle: (arrival: Arrival) => void): Promise<string> {
  const server = createServer((req, res) => {
    handle(watchArrival(req, LIMIT_MS, () => req.socket.destroy()));
    req
      .on('error', () => {})
      .on('end', () => res.end('all of it'))
      .resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ port, method: 'POST' });
  const answered = new Promise<string>((resolve) => {
    outgoing.on('error', () => resolve('cut off'));
    outgoing.on('response', (res) => res.setEncoding('utf8').on('data', resolve));
  });
  for (let piece = 0; piece < 3; piece++) {
    outgoing.write('piece');
    await delay(pauseMs);
  }
  outgoing.end();
  return answered;
}

test('a body that takes too long is cut off', async (t) => {
  assert.equal(await sendSlowly(t, LIMIT_MS, () => {}), 'cut off');
  assert.equal(await sendSlowly(t, 1, () => {}), 'all of it');
});

test('a body may take longer where somebody else watches it', async (t) => {
  assert.equal(await sendSlowly(t, LIMIT_MS, (arrival) => arrival.suspend()), 'all of it');
});

test('the clock starts anew where nobody does any more', async (t) => {
  const handle = (arrival: Arrival) => {
    arrival.suspend();
    arrival.resume();
  };
  assert.equal(await sendSlowly(t, LIMIT_MS, handle), 'cut off');
});
