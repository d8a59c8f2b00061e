import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import { loadConfig } from '../../src/config.ts';
import { GroupFilterSchema, GroupListSchema } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { startServer } from '../../src/main.ts';
import { databases } from '../support/databases.ts';
import { until } from '../support/eventually.ts';
import { silent } from '../support/server.ts';

test('a client that waits for the server gets through a restart', async (t) => {
  const home = await (databases[0] ?? assert.fail()).home();
  t.after(() => home.remove());
  const startAt = (listen: string) => startServer(loadConfig({ listen, data: home.dataDir }, {}), { log: silent });
  const first = await startAt('127.0.0.1:0');
  const { host } = new URL(first.url);
  const client = new GrpcClient(host, credentials.createInsecure(), {
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 100,
  });
  t.after(() => client.close());
  const metadata = new Metadata({ waitForReady: true });
  metadata.set('authorization', `Bearer ${await mintOwnerToken(home.dataDir)}`);

  let answered = 0;
  const list = () =>
    new Promise<string[]>((resolve, reject) => {
      client.makeUnaryRequest(
        '/chainguard.platform.iam.Groups/List',
        (message: Uint8Array) => Buffer.from(message),
        (bytes: Buffer) => fromBinary(GroupListSchema, bytes),
        toBinary(GroupFilterSchema, create(GroupFilterSchema)),
        metadata,
        { deadline: Date.now() + 20_000 },
        (error, found) => {
          answered++;
          if (error || !found) reject(error);
          else resolve(found.items.map(({ name }) => name));
        },
      );
    });

  const before = await list();
  await first.stop();
  // The client sees the connection go before it asks again.
  await until(
    async () => client.getChannel().getConnectivityState(false),
    (state) => state !== 2,
  );
  const waiting = list();
  assert.equal(answered, 1);
  const second = await startAt(host);
  t.after(() => second.stop());
  assert.deepEqual(await waiting, before);
});
