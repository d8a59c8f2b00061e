import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { BlobReader } from '../../blobs/blobs.ts';
import { send } from './send.ts';

/** What a client gets of a blob of two bytes, and why sending it failed. */
async function answerOf(t: TestContext, copyTo: BlobReader['copyTo']) {
  const failure = Promise.withResolvers<Error | undefined>();
  const reader: BlobReader = { size: 2, length: 2, copyTo, close: async () => {}, stream: () => assert.fail() };
  const server = createServer((_req, res) => {
    const answer = { status: 200, headers: { 'content-length': 2 }, reader };
    send(res, answer, 10_000).then(() => failure.resolve(undefined), failure.resolve);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const asked = get({ port: (server.address() as AddressInfo).port, agent: false });
  const [res] = (await once(asked, 'response')) as [IncomingMessage];
  return { body: res.toArray(), failure: failure.promise };
}

test('a blob is sent in chunks', async (t) => {
  const { body, failure } = await answerOf(t, async (sink) => {
    await sink(Buffer.from('a'));
    await sink(Buffer.from('b'));
  });
  assert.equal(Buffer.concat(await body).toString(), 'ab');
  assert.equal(await failure, undefined);
});

test('a blob that ends early breaks the connection immediately', async (t) => {
  const { body, failure } = await answerOf(t, async (sink) => {
    await sink(Buffer.from('a'));
    throw new Error('the disk is gone');
  });
  await assert.rejects(body, { code: 'ECONNRESET' });
  assert.match(String(await failure), /the disk is gone/);
});
