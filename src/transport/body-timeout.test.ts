import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type BodyTimeout, startBodyTimeout } from './body-timeout.ts';

const LIMIT_MS = 150;

interface StartedRequest {
  /** The client's request, of which the headers and the first part of the body have been sent. */
  readonly client: ClientRequest;
  readonly bodyTimeout: BodyTimeout;
  readonly outcome: Promise<'complete' | 'cut off'>;
}

/** Sends the start of a request to a server that closes the connection on a timeout. The timers are mocked. */
async function startRequest(t: TestContext): Promise<StartedRequest> {
  const received = Promise.withResolvers<BodyTimeout>();
  const server = createServer((req, res) => {
    received.resolve(startBodyTimeout(req, LIMIT_MS, () => req.socket.destroy()));
    req
      .on('error', () => {})
      .on('end', () => res.end())
      .resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  t.mock.timers.enable({ apis: ['setTimeout'] });

  const client = request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', method: 'POST' });
  const outcome = new Promise<'complete' | 'cut off'>((resolve) => {
    client.on('error', () => resolve('cut off'));
    client.on('response', (response) => response.resume().on('end', () => resolve('complete')));
  });
  client.write('the first part');
  return { client, bodyTimeout: await received.promise, outcome };
}

test('the connection is closed when the body has not arrived in time', async (t) => {
  const { outcome } = await startRequest(t);
  t.mock.timers.tick(LIMIT_MS);
  assert.equal(await outcome, 'cut off');
});

test('a body that arrives in time is read to its end', async (t) => {
  const { client, outcome } = await startRequest(t);
  t.mock.timers.tick(LIMIT_MS - 1);
  client.end('the rest');
  assert.equal(await outcome, 'complete');
  t.mock.timers.tick(LIMIT_MS);
});

test('a suspended timeout does not close the connection', async (t) => {
  const { client, bodyTimeout, outcome } = await startRequest(t);
  bodyTimeout.suspend();
  t.mock.timers.tick(10 * LIMIT_MS);
  client.end('the rest');
  assert.equal(await outcome, 'complete');
});

test('a resumed timeout starts with the full limit', async (t) => {
  const { client, bodyTimeout, outcome } = await startRequest(t);
  t.mock.timers.tick(LIMIT_MS - 1);
  bodyTimeout.suspend();
  bodyTimeout.resume();
  t.mock.timers.tick(LIMIT_MS - 1);
  assert.equal(client.destroyed, false);
  t.mock.timers.tick(1);
  assert.equal(await outcome, 'cut off');
});
