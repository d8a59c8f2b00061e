import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { mintOwnerToken, readOwner } from '../../src/identity/owner/owner-key.ts';
import { openStore } from '../../src/store/open.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { spawnServer } from '../support/process.ts';
import { wires } from '../support/wires.ts';

const BATCH = 300;
/** The milliseconds between sending a batch and killing the server: in the request, halfway, before the response. */
const KILLS = [10, 40, 100];
const { importAdvisories } = AdvisoryImportsService.method;

const COUNTS = `SELECT l.facet AS facet, l.n AS n FROM list l
  WHERE l.kind = 'advisory' AND l.facet LIKE 'artifact_names=%' AND l.n > 0`;

for (const database of databases) {
  describe(`kill -9 during an import on ${database.name}`, () => {
    test('every batch is stored completely or not at all, and can be sent again', { timeout: 600_000 }, async (t) => {
      const dataLocation = await database.createDataLocation();
      t.after(() => dataLocation.remove());
      const acknowledged: number[] = [];

      for (const [round, ms] of [...KILLS, undefined].entries()) {
        const server = await spawnServer(dataLocation);
        t.after(() => server.kill());
        const parent = (await readOwner(dataLocation.dataDir))?.organization ?? assert.fail();
        const token = await mintOwnerToken(dataLocation.dataDir);
        const api = wires[round % wires.length]?.connect(server.url, token) ?? assert.fail();
        const send = async (batch: number): Promise<void> => {
          const advisories = Array.from({ length: BATCH }, (_, i) => ({
            artifactName: `batch-${batch}`,
            aliases: [`CVE-${batch}-${i}`],
            events: [{ type: { case: 'fixed' as const, value: { fixedVersion: '1' } } }],
          }));
          const { created, unchanged } = await api.call(importAdvisories, { parent, advisories });
          assert.equal(created + unchanged, BATCH);
          if (acknowledged.includes(batch)) assert.equal(created, 0);
          acknowledged.push(batch);
        };
        if (ms === undefined) {
          for (const batch of KILLS.keys()) await send(batch);
          assert.equal(await server.stop(), 0);
        } else {
          const sent = send(round).catch(() => {});
          await delay(ms);
          await server.kill();
          await sent;
        }
        api.close();

        const store = await openStore(dataLocation);
        const counts = await store.reader.all<{ facet: string; n: number }>(COUNTS);
        for (const { facet, n } of counts) assert.equal(n, BATCH, facet);
        for (const batch of acknowledged)
          assert.ok(
            counts.some(({ facet }) => facet.endsWith(`=batch-${batch}`)),
            `${batch}`,
          );
        await assertConsistent(store.reader);
        await store.close();
      }
    });
  });
}
