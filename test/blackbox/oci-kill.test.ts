import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { buildImage, digestOf, type OciClient, ociClient } from '../support/oci-client.ts';
import { spawnServer } from '../support/process.ts';

const KILLS = 3;
const PUSHERS = 4;
const PUSHES_A_ROUND = 25;

/** An acknowledged image with its tag. */
interface Pushed {
  readonly name: string;
  readonly tag: string;
  readonly digest: string;
}

for (const database of databases) {
  describe(`kill -9 during pushes on ${database.name}`, () => {
    test(`${KILLS} kills lose no acknowledged image`, { timeout: 600_000 }, async (t) => {
      const dataLocation = await database.createDataLocation();
      t.after(() => dataLocation.remove());
      const acknowledged: Pushed[] = [];
      let turn = 0;

      async function push(client: OciClient, pusher: number): Promise<void> {
        const number = ++turn;
        const name = `my-org/app-${pusher}`;
        const layers = [Buffer.alloc(50_000, number), Buffer.from(`layer of ${number}`)];
        const { manifest, blobs } = buildImage('amd64', ...layers);
        for (const blob of blobs) await client.pushBlob(name, blob);
        await client.pushManifest(name, `v${number}`, manifest);
        acknowledged.push({ name, tag: `v${number}`, digest: manifest.digest });
      }

      for (let round = 0; round < KILLS; round++) {
        const server = await spawnServer(dataLocation);
        t.after(() => server.kill());
        const token = await mintOwnerToken(dataLocation.dataDir);
        const target = acknowledged.length + PUSHES_A_ROUND;
        let isDead = false;
        const pushers = Array.from({ length: PUSHERS }, async (_, pusher) => {
          const client = ociClient(server.url, `Bearer ${token}`);
          try {
            while (!isDead) await push(client, pusher);
          } catch (error) {
            // Error responses are bugs. Broken connections are expected.
            if (!isDead || /gave \d/.test(String(error))) throw error;
          } finally {
            client.close();
          }
        });
        const done = Promise.all(pushers);
        while (acknowledged.length < target) await Promise.race([done, delay(1)]);
        isDead = true;
        await server.kill();
        await done;
      }

      const server = await spawnServer(dataLocation);
      const client = ociClient(server.url, `Bearer ${await mintOwnerToken(dataLocation.dataDir)}`);
      for (const { name, tag, digest } of acknowledged) {
        const { status, body } = await client.send('GET', `/v2/${name}/manifests/${tag}`);
        assert.deepEqual([status, digestOf(body)], [200, digest]);
        const { config, layers } = JSON.parse(body.toString());
        for (const blob of [config, ...layers]) {
          const pulled = await client.send('GET', `/v2/${name}/blobs/${blob.digest}`);
          assert.deepEqual([pulled.status, digestOf(pulled.body)], [200, blob.digest]);
        }
      }
      // The server accepts further pushes.
      await push(client, 0);
      client.close();
      assert.equal(await server.stop(), 0);
      const store = await openStore(dataLocation);
      t.after(() => store.close());
      await assertConsistent(store.reader);
      t.diagnostic(`${acknowledged.length} images acknowledged, ${turn - acknowledged.length} cut off`);
    });
  });
}
