import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import { loadConfig } from '../../src/config.ts';
import { GroupFilterSchema, GroupListSchema } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { startServer } from '../../src/main.ts';
import { databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { silentLog } from '../support/server.ts';

test('a client with wait-for-ready survives a restart of the server', async (t) => {
  const dataLocation = await (databases[0] ?? assert.fail()).createDataLocation();
  t.after(() => dataLocation.remove());
  const startAt = (listen: string) =>
    startServer(loadConfig({ listen, data: dataLocation.dataDir }, {}), { log: silentLog });
  const first = await startAt('127.0.0.1:0');
  const { host } = new URL(first.url);
  const client = new GrpcClient(host, credentials.createInsecure(), {
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 100,
  });
  t.after(() => client.close());
  const metadata = new Metadata({ waitForReady: true });
  metadata.set('authorization', `Bearer ${await mintOwnerToken(dataLocation.dataDir)}`);

  let completed = 0;
  const list = () =>
    new Promise<string[]>((resolve, reject) => {
      client.makeUnaryRequest(
        '/chainguard.platform.iam.Groups/List',
        (message: Uint8Array) => Buffer.from(message),
        (bytes: Buffer) => fromBinary(GroupListSchema, bytes),
        toBinary(GroupFilterSchema, create(GroupFilterSchema)),
        metadata,
        { deadline: Date.now() + 120_000 },
        (error, found) => {
          completed++;
          if (error || !found) reject(error);
          else resolve(found.items.map(({ name }) => name));
        },
      );
    });

  const before = await list();
  await first.stop();
  // The client must notice the closed connection before the next call.
  await pollUntil(
    async () => client.getChannel().getConnectivityState(false),
    (state) => state !== 2,
  );
  const waiting = list();
  assert.equal(completed, 1);
  const second = await startAt(host);
  t.after(() => second.stop());
  assert.deepEqual(await waiting, before);
});
