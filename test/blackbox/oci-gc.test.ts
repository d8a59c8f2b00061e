import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Blobs } from '../../src/blobs/blobs.ts';
import { openFilesystemBlobs } from '../../src/blobs/filesystem.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { collectGarbage } from '../../src/oci/gc/gc.ts';
import { registryDirectory } from '../../src/oci/registry.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { databases } from '../support/databases.ts';
import { benchOn, type OciBench } from '../support/oci-bench.ts';
import {
  describe as describing,
  digestOf,
  IMAGE,
  imageOf,
  manifestOf,
  type OciClient,
  pushImage,
} from '../support/oci-client.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

for (const database of databases) {
  describe(`garbage collection on ${database.name}`, () => {
    const bench: OciBench = benchOn(database);
    /** How far the clock of collections is ahead of the server's. */
    let ahead = 0;
    let store: Store;
    // As another process has them: nothing of the server's memory is shared.
    let blobs: Blobs;
    before(async () => {
      store = await openStore(bench.server.home);
      blobs = await openFilesystemBlobs(registryDirectory(bench.server.home.dataDir));
    });
    after(() => store.close());
    beforeEach(async () => {
      ahead = 2 * DAY;
      await collect();
      ahead = 0;
    });

    const collect = (options: { graceMs?: number; dryRun?: boolean; blobs?: Blobs } = {}) =>
      collectGarbage({ store, blobs, now: Date.now() + ahead, graceMs: DAY, ...options });
    const isStored = async (content: Uint8Array) => (await blobs.stat(digestOf(content))) !== undefined;

    test('what nothing needs goes after its time of grace; all else stays', async () => {
      const team = await bench.newTeam();
      const name = `${team.name}/app`;
      const kept = await pushImage(bench.owner, name, 'v1', 'needed');
      const [loose, shared] = [Buffer.from('loose'), Buffer.from('needed elsewhere')];
      await bench.owner.pushBlob(name, loose);
      await bench.owner.pushBlob(name, shared);
      await pushImage(bench.owner, `${team.name}/other`, 'v1', 'needed elsewhere');
      const gone = await pushImage(bench.owner, name, 'gone', 'of the deleted');
      await bench.owner.send('DELETE', `/v2/${name}/manifests/${gone.digest}`);
      const upload = await bench.owner.send('POST', `/v2/${name}/blobs/uploads/`);

      assert.deepEqual(await collect(), { referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 }, 'all is fresh');
      ahead = 2 * DAY;
      const expected = {
        referrers: 0,
        // Two links of the image that was deleted: its config is also that of others.
        links: 3,
        blobs: 2,
        bytes: 'loose'.length + 'of the deleted'.length,
        uploads: 1,
      };
      assert.deepEqual(await collect({ dryRun: true }), expected);
      assert.ok(await isStored(loose));
      assert.deepEqual(await collect(), expected);
      assert.ok(!(await isStored(loose)));
      assert.ok(await isStored(shared));
      assert.equal((await bench.owner.send('HEAD', `/v2/${name}/blobs/${digestOf(shared)}`)).status, 404);
      assert.equal((await bench.owner.send('GET', String(upload.headers.location))).status, 404);
      const { body } = await bench.owner.send('GET', `/v2/${name}/manifests/v1`);
      assert.deepEqual(body, kept.bytes);
      for (const { digest } of [JSON.parse(body.toString()).config, ...JSON.parse(body.toString()).layers]) {
        assert.equal((await bench.owner.send('GET', `/v2/${name}/blobs/${digest}`)).status, 200);
      }
      assert.deepEqual(await collect(), { referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 }, 'again');
    });

    test('a referrer goes with its subject, unless something else needs it', async () => {
      const team = await bench.newTeam();
      const name = `${team.name}/signed`;
      const subject = await pushImage(bench.owner, name, 'v1');
      const empty = Buffer.from('{}');
      await bench.owner.pushBlob(name, empty);
      const about = (note: string) =>
        manifestOf({
          schemaVersion: 2,
          mediaType: IMAGE,
          artifactType: 'application/x.signature',
          config: describing('application/vnd.oci.empty.v1+json', empty),
          layers: [],
          subject: describing(subject.mediaType, subject.bytes),
          annotations: { note },
        } as { mediaType: string });
      const [loose, tagged] = [about('loose'), about('tagged')];
      await bench.owner.pushManifest(name, loose.digest, loose);
      await bench.owner.pushManifest(name, 'signature', tagged);
      ahead = 2 * DAY;
      assert.equal((await collect()).referrers, 0, 'the subject is there');
      await bench.owner.send('DELETE', `/v2/${name}/manifests/${subject.digest}`);
      assert.equal((await collect()).referrers, 1);
      const status = async (digest: string) =>
        (await bench.owner.send('HEAD', `/v2/${name}/manifests/${digest}`)).status;
      assert.deepEqual([await status(loose.digest), await status(tagged.digest)], [404, 200]);
    });

    test('what a push was told to be there stays until it is done', async () => {
      const team = await bench.newTeam();
      const name = `${team.name}/slow`;
      const layer = Buffer.from(`pushed slowly on ${database.name}`);
      const { manifest, blobs: parts } = imageOf('amd64', layer);
      for (const part of parts) await bench.owner.pushBlob(name, part);
      await store.write((tx) => tx.run('UPDATE blob_link SET linked = linked - $1', DAY - HOUR));
      const oldest = async () => {
        const sql = 'SELECT min(linked) AS linked FROM blob_link WHERE digest = $1';
        const row = await store.reader.get<{ linked: number }>(sql, digestOf(layer));
        return Date.now() - (row?.linked ?? 0);
      };
      const puller = await bench.withRole('viewer', team.uid);
      const ask = async (client: OciClient) => {
        for (const part of parts) {
          assert.equal((await client.send('HEAD', `/v2/${name}/blobs/${digestOf(part)}`)).status, 200);
        }
      };
      await ask(puller);
      assert.ok((await oldest()) > HOUR, 'whoever only pulls keeps nothing');
      await ask(bench.owner);
      assert.ok((await oldest()) < HOUR);
      ahead = 2 * HOUR;
      await collect();
      await bench.owner.pushManifest(name, 'v1', manifest);
    });

    test('with its repo, everything of it goes that no other has', async () => {
      const team = await bench.newTeam();
      await pushImage(bench.owner, `${team.name}/doomed`, 'v1', `doomed on ${database.name}`);
      const { listRepos, deleteRepo } = ReposService.method;
      const { repos } = await bench.api.call(listRepos, { uidp: { childrenOf: team.uid } });
      await bench.api.call(deleteRepo, { uid: repos[0]?.uid ?? '' });
      ahead = 2 * DAY;
      await collect();
      assert.ok(!(await isStored(Buffer.from(`doomed on ${database.name}`))));
    });

    test('a collection that broke off is taken up where it was', async () => {
      const team = await bench.newTeam();
      const count = 160;
      for (let i = 0; i < count; i++) {
        const content = Buffer.from(`loose ${i} on ${database.name}`);
        await bench.owner.send('POST', `/v2/${team.name}/many/blobs/uploads/?digest=${digestOf(content)}`, {
          body: content,
        });
      }
      ahead = 2 * DAY;
      let removed = 0;
      const failing: Blobs = {
        ...blobs,
        remove: (...args) => (++removed > 70 ? Promise.reject(new Error('killed')) : blobs.remove(...args)),
      };
      await assert.rejects(collect({ blobs: failing }), /killed/);
      const starts: (string | undefined)[] = [];
      const watched: Blobs = {
        ...blobs,
        list(from) {
          starts.push(from);
          return blobs.list(from);
        },
      };
      const { links, blobs: rest } = await collect({ blobs: watched });
      assert.equal(links, 0, 'that part was done');
      assert.ok(rest > 0 && rest < count, String(rest));
      assert.match(starts[0] ?? '', /^sha256:/);
      // The next one starts over, and there is nothing left.
      assert.equal((await collect({ blobs: watched })).blobs, 0);
      assert.equal(starts[1], undefined);
    });

    test('pushes that go on beside collections without any grace never lose a file that is linked', async () => {
      const team = await bench.newTeam();
      const name = `${team.name}/contended`;
      const contents = Array.from({ length: 4 }, (_, i) => Buffer.from(`contended ${i} on ${database.name}`));
      let isOver = false;
      let pushed = 0;
      const pushers = contents.map(async (content) => {
        while (!isOver) {
          const path = `/v2/${name}/blobs/uploads/?digest=${digestOf(content)}`;
          const { status, body } = await bench.owner.send('POST', path, { body: content });
          // Its upload may be collected under its hands, or be held by the collector, or its blob may go; but then it must be told.
          assert.ok([201, 404, 409, 500, 503].includes(status), `${status} ${body}`);
          if (status === 201) pushed++;
          // Without a link for a while, so that there is something to collect.
          await bench.owner.send('DELETE', `/v2/${name}/blobs/${digestOf(content)}`);
        }
      });
      let collected = 0;
      try {
        for (let round = 0; round < 8; round++) {
          collected += (await collect({ graceMs: -DAY })).blobs;
          const rows = await store.reader.all<{ digest: string }>('SELECT DISTINCT digest FROM blob_link');
          for (const { digest } of rows) {
            const isLinked = async () =>
              (await store.reader.get('SELECT digest FROM blob_link WHERE digest = $1', digest)) !== undefined;
            assert.ok((await blobs.stat(digest)) || !(await isLinked()), `${digest} is linked and not there`);
          }
        }
      } finally {
        isOver = true;
        await Promise.all(pushers);
      }
      assert.ok(pushed > 0 && collected > 0, `${pushed} pushed, ${collected} collected`);
    });
  });
}
