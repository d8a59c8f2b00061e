import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { BlobReader } from '../blobs/blobs.ts';
import { send } from './send.ts';

/** What a client gets of a blob of two bytes, and what became of sending it. */
async function answerOf(t: TestContext, copyTo: BlobReader['copyTo']) {
  const sending = Promise.withResolvers<void>();
  const reader: BlobReader = { size: 2, length: 2, copyTo, close: async () => {}, stream: () => assert.fail() };
  const server = createServer((_req, res) => {
    const answer = { status: 200, headers: { 'content-length': 2 }, reader };
    send(res, answer, 10_000).then(sending.resolve, sending.reject);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const asked = get({ port: (server.address() as AddressInfo).port, agent: false });
  const [res] = (await once(asked, 'response')) as [IncomingMessage];
  return { body: res.toArray(), sent: sending.promise };
}

test('a blob is sent piece by piece', async (t) => {
  const { body, sent } = await answerOf(t, async (sink) => {
    await sink(Buffer.from('a'));
    await sink(Buffer.from('b'));
  });
  await sent;
  assert.equal(Buffer.concat(await body).toString(), 'ab');
});

test('a blob that ends too early breaks the connection, at once', async (t) => {
  const { body, sent } = await answerOf(t, async (sink) => {
    await sink(Buffer.from('a'));
    throw new Error('the disk is gone');
  });
  await Promise.all([assert.rejects(sent, /the disk is gone/), assert.rejects(body, { code: 'ECONNRESET' })]);
});
