import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import {
  descriptorOf,
  digestOf,
  insertImage,
  insertManifest,
  OCI_IMAGE,
  OCI_INDEX,
} from '../../../../test/support/images.ts';
import type { Uid } from '../../../base/uid.ts';
import type { Store } from '../../../store/store.ts';
import { createGroups, createRepo } from '../repo.testing.ts';
import { findBlobLink, linkBlob } from './blob-links.ts';
import {
  deleteOrphan,
  findLinkedDigests,
  findOrphanReferrers,
  findUnreferencedLinks,
  type GarbageBatch,
  type GarbageScan,
  type RepoDigest,
  unlinkUnreferenced,
} from './garbage.ts';
import { deleteManifest, findManifest } from './manifests.ts';

for (const database of databases) {
  describe(`garbage on ${database.name}`, () => {
    let store: Store;
    let group: Uid;
    let repo: Uid;

    before(async () => {
      store = await temporaryStore(database);
      group = await createGroups(store, 'org');
    });
    beforeEach(async () => {
      repo = await createRepo(store, group);
    });
    after(() => store.close());

    const link = (digest: string, now: number, to = repo) => store.write((tx) => linkBlob(tx, to, digest, 3, now));

    /** Scans a table to its end in small steps, and returns what is in the repo of this test. */
    async function scan<T extends RepoDigest>(
      step: (options: GarbageScan) => Promise<GarbageBatch<T>>,
      before: number,
    ): Promise<T[]> {
      const all: T[] = [];
      let next: RepoDigest | undefined;
      do {
        const batch: GarbageBatch<T> = await step({ before, limit: 2, after: next });
        all.push(...batch.found);
        next = batch.next;
      } while (next);
      return all.filter((found) => found.repo === repo);
    }
    const links = (before: number) => scan((options) => findUnreferencedLinks(store.reader, options), before);
    const orphans = (before: number) => scan((options) => findOrphanReferrers(store.reader, options), before);

    test('a link is garbage when no manifest needs it and it is older than the grace period', async () => {
      const unused = [digestOf('a'), digestOf('b'), digestOf('c')].sort();
      for (const digest of unused) await link(digest, 10);
      await insertImage(store, repo, undefined, { now: 10 });
      await link(digestOf('young'), 50);
      assert.deepEqual(
        await links(50),
        unused.map((digest) => ({ repo, digest, size: 3 })),
      );
      assert.equal(
        await store.write((tx) =>
          unlinkUnreferenced(
            tx,
            unused.map((digest) => ({ repo, digest })),
            50,
          ),
        ),
        3,
      );
      assert.deepEqual(await links(50), []);
      assert.equal((await links(51)).length, 1);
    });

    test('a link stays when it was renewed or a manifest needs it since the scan', async () => {
      const { digest } = await insertImage(store, repo, undefined, { content: 'needed', now: 10 });
      await link(digestOf('touched'), 10);
      const found = [
        { repo, digest: digestOf('needed') },
        { repo, digest: digestOf('touched') },
      ];
      await link(digestOf('touched'), 60);
      assert.equal(await store.write((tx) => unlinkUnreferenced(tx, found, 50)), 0);
      await store.write((db) => deleteManifest({ db, now: 1, actor: '' }, repo, digest));
      assert.equal(await store.write((tx) => unlinkUnreferenced(tx, found, 50)), 1);
      assert.equal(await findBlobLink(store.reader, repo, digestOf('needed')), undefined);
    });

    test('when a push and a collection run at once, the image is complete or refused', async () => {
      for (let round = 0; round < 10; round++) {
        const content = `round ${round}`;
        const digest = digestOf(content);
        await link(digest, 10);
        const [pushed] = await Promise.allSettled([
          insertImage(store, repo, undefined, { content, now: 10 }),
          store.write((tx) => unlinkUnreferenced(tx, [{ repo, digest }], 50)),
        ]);
        if (pushed.status === 'fulfilled') assert.ok(await findBlobLink(store.reader, repo, digest), content);
      }
    });

    test('a referrer is garbage when its subject does not exist, and no tag or index refers to it', async () => {
      const subject = await insertImage(store, repo, undefined, { content: 'subject', now: 10 });
      const pushReferrer = (content: string, tag?: string, now = 10) =>
        insertImage(store, repo, tag, { content, subject, now });
      const plain = await pushReferrer('plain');
      await pushReferrer('tagged', 'sha256-x.sig');
      await pushReferrer('young', undefined, 50);
      const { mediaType, digest, size } = await pushReferrer('in an index');
      await insertManifest(store, repo, { mediaType: OCI_INDEX, manifests: [{ mediaType, digest, size }] });
      assert.deepEqual(await orphans(50), []);

      await store.write((db) => deleteManifest({ db, now: 1, actor: '' }, repo, subject.digest));
      const found = await orphans(50);
      assert.deepEqual(
        found.map((one) => one.digest),
        [plain.digest],
      );
      const remove = (one: RepoDigest) => store.write((db) => deleteOrphan({ db, now: 1, actor: '' }, one, 50));
      assert.equal(await remove({ repo, digest }), false);
      assert.equal(await remove({ repo, digest: plain.digest }), true);
      assert.equal(await remove({ repo, digest: plain.digest }), false);
      assert.equal(await findManifest(store.reader, repo, plain.digest), undefined);
      assert.ok(await findManifest(store.reader, repo, digest));
    });

    test('a file can be deleted when no repo links its digest', async () => {
      const other = await createRepo(store, group);
      const [one, two, none] = [digestOf('one'), digestOf('two'), descriptorOf(OCI_IMAGE, 'none').digest];
      await link(one, 1);
      await link(one, 1, other);
      await link(two, 1, other);
      assert.deepEqual([...(await findLinkedDigests(store.reader, [one, two, none]))].sort(), [one, two].sort());
      assert.deepEqual(await findLinkedDigests(store.reader, []), new Set());
    });
  });
}
