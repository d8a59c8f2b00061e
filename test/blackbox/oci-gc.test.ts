import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Blobs } from '../../src/blobs/blobs.ts';
import { openFilesystemBlobs } from '../../src/blobs/filesystem.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { collectGarbage } from '../../src/oci/gc/gc.ts';
import { registryDirectory } from '../../src/oci/registry-directory.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { databases } from '../support/databases.ts';
import {
  buildImage,
  buildManifest,
  descriptorFor as describing,
  digestOf,
  IMAGE,
  type OciClient,
  pushImage,
} from '../support/oci-client.ts';
import { createOciFixture, type OciFixture } from '../support/oci-fixture.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

for (const database of databases) {
  describe(`garbage collection on ${database.name}`, () => {
    const fixture: OciFixture = createOciFixture(database);
    /** How far the clock of the collector is ahead of the server's. */
    let ahead = 0;
    let store: Store;
    // Opened as in another process: no state of the server is shared.
    let blobs: Blobs;
    before(async () => {
      store = await openStore(fixture.server.dataLocation);
      blobs = await openFilesystemBlobs(registryDirectory(fixture.server.dataLocation.dataDir));
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

    test('unreferenced content is deleted after the grace period, and referenced content is kept', async () => {
      const team = await fixture.newTeam();
      const name = `${team.name}/app`;
      const kept = await pushImage(fixture.owner, name, 'v1', 'needed');
      const [loose, shared] = [Buffer.from('loose'), Buffer.from('needed elsewhere')];
      await fixture.owner.pushBlob(name, loose);
      await fixture.owner.pushBlob(name, shared);
      await pushImage(fixture.owner, `${team.name}/other`, 'v1', 'needed elsewhere');
      const deleted = await pushImage(fixture.owner, name, 'gone', 'of the deleted');
      await fixture.owner.send('DELETE', `/v2/${name}/manifests/${deleted.digest}`);
      const upload = await fixture.owner.send('POST', `/v2/${name}/blobs/uploads/`);

      assert.deepEqual(
        await collect(),
        { referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 },
        'everything is within the grace period',
      );
      ahead = 2 * DAY;
      const expected = {
        referrers: 0,
        // Two of them are links of the deleted image. Its config is shared with other images.
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
      assert.equal((await fixture.owner.send('HEAD', `/v2/${name}/blobs/${digestOf(shared)}`)).status, 404);
      assert.equal((await fixture.owner.send('GET', String(upload.headers.location))).status, 404);
      const { body } = await fixture.owner.send('GET', `/v2/${name}/manifests/v1`);
      assert.deepEqual(body, kept.bytes);
      for (const { digest } of [JSON.parse(body.toString()).config, ...JSON.parse(body.toString()).layers]) {
        assert.equal((await fixture.owner.send('GET', `/v2/${name}/blobs/${digest}`)).status, 200);
      }
      assert.deepEqual(
        await collect(),
        { referrers: 0, links: 0, blobs: 0, bytes: 0, uploads: 0 },
        'a second collection finds nothing',
      );
    });

    test('a referrer is deleted after its subject, unless it is tagged', async () => {
      const team = await fixture.newTeam();
      const name = `${team.name}/signed`;
      const subject = await pushImage(fixture.owner, name, 'v1');
      const empty = Buffer.from('{}');
      await fixture.owner.pushBlob(name, empty);
      const newReferrer = (note: string) =>
        buildManifest({
          schemaVersion: 2,
          mediaType: IMAGE,
          artifactType: 'application/x.signature',
          config: describing('application/vnd.oci.empty.v1+json', empty),
          layers: [],
          subject: describing(subject.mediaType, subject.bytes),
          annotations: { note },
        } as { mediaType: string });
      const [loose, tagged] = [newReferrer('loose'), newReferrer('tagged')];
      await fixture.owner.pushManifest(name, loose.digest, loose);
      await fixture.owner.pushManifest(name, 'signature', tagged);
      ahead = 2 * DAY;
      assert.equal((await collect()).referrers, 0, 'the subject exists');
      await fixture.owner.send('DELETE', `/v2/${name}/manifests/${subject.digest}`);
      assert.equal((await collect()).referrers, 1);
      const status = async (digest: string) =>
        (await fixture.owner.send('HEAD', `/v2/${name}/manifests/${digest}`)).status;
      assert.deepEqual([await status(loose.digest), await status(tagged.digest)], [404, 200]);
    });

    test('blobs that a push has found are kept until it is finished', async () => {
      const team = await fixture.newTeam();
      const name = `${team.name}/slow`;
      const layer = Buffer.from(`pushed slowly on ${database.name}`);
      const { manifest, blobs: parts } = buildImage('amd64', layer);
      for (const part of parts) await fixture.owner.pushBlob(name, part);
      await store.write((tx) => tx.run('UPDATE blob_link SET linked = linked - $1', DAY - HOUR));
      const oldest = async () => {
        const sql = 'SELECT min(linked) AS linked FROM blob_link WHERE digest = $1';
        const row = await store.reader.get<{ linked: number }>(sql, digestOf(layer));
        return Date.now() - (row?.linked ?? 0);
      };
      const puller = await fixture.withRole('viewer', team.uid);
      const checkBlobs = async (client: OciClient) => {
        for (const part of parts) {
          assert.equal((await client.send('HEAD', `/v2/${name}/blobs/${digestOf(part)}`)).status, 200);
        }
      };
      await checkBlobs(puller);
      assert.ok((await oldest()) > HOUR, 'a check by a caller that can only pull does not count');
      await checkBlobs(fixture.owner);
      assert.ok((await oldest()) < HOUR);
      ahead = 2 * HOUR;
      await collect();
      await fixture.owner.pushManifest(name, 'v1', manifest);
    });

    test('the content of a deleted repo is deleted, unless another repo has it', async () => {
      const team = await fixture.newTeam();
      await pushImage(fixture.owner, `${team.name}/doomed`, 'v1', `doomed on ${database.name}`);
      const { listRepos, deleteRepo } = ReposService.method;
      const { repos } = await fixture.api.call(listRepos, { uidp: { childrenOf: team.uid } });
      await fixture.api.call(deleteRepo, { uid: repos[0]?.uid ?? '' });
      ahead = 2 * DAY;
      await collect();
      assert.ok(!(await isStored(Buffer.from(`doomed on ${database.name}`))));
    });

    test('an interrupted collection is continued where it stopped', async () => {
      const team = await fixture.newTeam();
      const count = 160;
      for (let i = 0; i < count; i++) {
        const content = Buffer.from(`loose ${i} on ${database.name}`);
        await fixture.owner.send('POST', `/v2/${team.name}/many/blobs/uploads/?digest=${digestOf(content)}`, {
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
      assert.equal(links, 0, 'the links were collected before the interruption');
      assert.ok(rest > 0 && rest < count, String(rest));
      assert.match(starts[0] ?? '', /^sha256:/);
      // The next collection starts over and finds nothing.
      assert.equal((await collect({ blobs: watched })).blobs, 0);
      assert.equal(starts[1], undefined);
    });

    test('collections without a grace period never delete a linked file of concurrent pushes', async () => {
      const team = await fixture.newTeam();
      const name = `${team.name}/contended`;
      const contents = Array.from({ length: 4 }, (_, i) => Buffer.from(`contended ${i} on ${database.name}`));
      let isOver = false;
      let pushed = 0;
      const pushers = contents.map(async (content) => {
        while (!isOver) {
          const path = `/v2/${name}/blobs/uploads/?digest=${digestOf(content)}`;
          const { status, body } = await fixture.owner.send('POST', path, { body: content });
          // The collector may delete or lock the upload, or delete the blob. Then the push must fail.
          assert.ok([201, 404, 409, 500, 503].includes(status), `${status} ${body}`);
          if (status === 201) pushed++;
          // Unlinks the blob, so that there is something to collect.
          await fixture.owner.send('DELETE', `/v2/${name}/blobs/${digestOf(content)}`);
        }
      });
      let collected = 0;
      try {
        // More rounds on a busy machine, on which the first ones may find nothing to collect.
        for (let round = 0; round < 8 || pushed === 0 || collected === 0; round++) {
          collected += (await collect({ graceMs: -DAY })).blobs;
          const rows = await store.reader.all<{ digest: string }>('SELECT DISTINCT digest FROM blob_link');
          for (const { digest } of rows) {
            const isLinked = async () =>
              (await store.reader.get('SELECT digest FROM blob_link WHERE digest = $1', digest)) !== undefined;
            assert.ok(
              (await blobs.stat(digest)) || !(await isLinked()),
              `${digest} is linked, but its file is missing`,
            );
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
