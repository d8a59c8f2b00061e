import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { assertConsistent } from '../../../../test/support/consistency.ts';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import {
  type Descriptor,
  descriptorOf,
  digestOf,
  insertImage,
  insertManifest,
  OCI_CONFIG,
  OCI_IMAGE,
  OCI_INDEX,
  OCI_LAYER,
} from '../../../../test/support/images.ts';
import type { Uid } from '../../../base/uid.ts';
import { findChildren } from '../../../resource/read.ts';
import { deleteOne } from '../../../resource/write.ts';
import type { Store } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import { createGroups, createRepo } from '../repo.testing.ts';
import { findTagForUpdate, listTagNames, type RegistryWrite, releaseTag } from '../tags/tag-targets.ts';
import { tags } from '../tags/tags.ts';
import { findBlobLink, linkBlob, mountBlob, unlinkBlob } from './blob-links.ts';
import { deleteManifest, findManifest, findTagged } from './manifests.ts';
import { findReferrers } from './referrers.ts';

/** Deletes a tag as DeleteTag does. Returns whether it existed. */
async function deleteTag(write: RegistryWrite, repo: string, name: string): Promise<boolean> {
  const stored = await findTagForUpdate(write.db, repo, name);
  if (!stored) return false;
  await releaseTag(write, stored);
  await deleteOne(write.db, tags, stored);
  return true;
}

const isRegistryError = (code: string) => (error: unknown) => error instanceof RegistryError && error.code === code;

for (const database of databases) {
  describe(`manifests on ${database.name}`, () => {
    let store: Store;
    let group: Uid;
    let repo: Uid;

    before(async () => {
      store = await temporaryStore(database);
      group = await createGroups(store, 'org', 'team');
    });
    beforeEach(async () => {
      repo = await createRepo(store, group);
    });
    after(async () => {
      await assertConsistent(store.reader);
      await store.close();
    });

    const write = <T>(work: (write: RegistryWrite) => Promise<T>): Promise<T> =>
      store.write((db) => work({ db, now: 2000, actor: 'actor' }));
    const tagsOf = async () =>
      (await findChildren(store.reader, tags, repo)).map(({ message: { name, digest } }) => [name, digest]);
    const historyOf = async (name: string) =>
      (
        await store.reader.all<{ digest: string | null; actor: string; changed: number }>(
          'SELECT digest, actor, changed FROM tag_history WHERE repo = $1 AND name = $2 ORDER BY id',
          repo,
          name,
        )
      ).map(({ digest, actor, changed }) => [digest, actor, changed]);

    test('a manifest is found by digest and by tag, byte for byte, in its repo only', async () => {
      const { digest } = await insertImage(store, repo, 'latest');
      const found = await findManifest(store.reader, repo, digest);
      assert.equal(digestOf(found?.bytes ?? ''), digest);
      assert.equal(found?.mediaType, OCI_IMAGE);
      assert.deepEqual(await findTagged(store.reader, repo, 'latest'), found);
      assert.equal(await findTagged(store.reader, repo, 'other'), undefined);
      const other = await createRepo(store, group);
      assert.equal(await findManifest(store.reader, other, digest), undefined);
      assert.equal(await findTagged(store.reader, other, 'latest'), undefined);
    });

    test('a manifest needs its blobs in the same repo; the error lists the missing ones', async () => {
      const other = await createRepo(store, group);
      await insertImage(store, other, undefined, { content: 'elsewhere' });
      const config = descriptorOf(OCI_CONFIG, '{}');
      const layers = ['elsewhere', 'nowhere'].map((content) => descriptorOf(OCI_LAYER, content));
      await store.write((tx) => linkBlob(tx, repo, config.digest, config.size, 0));
      const refused = insertManifest(store, repo, { mediaType: OCI_IMAGE, config, layers }, 'latest');
      await assert.rejects(refused, (error: RegistryError) => {
        assert.equal(error.code, 'MANIFEST_BLOB_UNKNOWN');
        assert.deepEqual(error.detail?.digests, layers.map(({ digest }) => digest).sort());
        return true;
      });
      assert.deepEqual(await tagsOf(), []);

      const foreign = { ...descriptorOf('application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', 'x'), size: 9e15 };
      await insertManifest(store, repo, { mediaType: OCI_IMAGE, config, layers: Array(5).fill(foreign) });
    });

    test('an index needs its children in the same repo', async () => {
      const { mediaType, digest, size } = await insertImage(store, repo);
      const missing = descriptorOf(OCI_IMAGE, 'missing');
      const manifests = [{ mediaType, digest, size }];
      await insertManifest(store, repo, { mediaType: OCI_INDEX, manifests });
      await assert.rejects(
        insertManifest(store, repo, { mediaType: OCI_INDEX, manifests: [...manifests, missing] }),
        isRegistryError('MANIFEST_BLOB_UNKNOWN'),
      );
    });

    test('a manifest can have hundreds of layers and repeat them', async () => {
      const layers = Array.from({ length: 130 }, (_, i) => descriptorOf(OCI_LAYER, `layer ${i % 120}`));
      const config = descriptorOf(OCI_CONFIG, '{}');
      await store.write(async (tx) => {
        for (const { digest, size } of [config, ...layers]) await linkBlob(tx, repo, digest, size, 0);
      });
      const { digest } = await insertManifest(store, repo, { mediaType: OCI_IMAGE, config, layers });
      const links = await store.reader.all('SELECT target FROM manifest_link WHERE manifest = $1', digest);
      assert.equal(links.length, 121);
    });

    test('a tag moves with each push, and its history records every move', async () => {
      const one = await insertImage(store, repo, 'latest', { content: 'one', now: 1, actor: 'a' });
      await insertImage(store, repo, 'latest', { content: 'one', now: 2, actor: 'b' });
      const two = await insertImage(store, repo, 'latest', { content: 'two', now: 3, actor: 'c' });
      assert.deepEqual(await tagsOf(), [['latest', two.digest]]);
      assert.equal((await findTagged(store.reader, repo, 'latest'))?.digest, two.digest);
      assert.deepEqual(await historyOf('latest'), [
        [one.digest, 'a', 1],
        [two.digest, 'c', 3],
      ]);
    });

    test('of concurrent pushes to one tag the last wins, and the history records all', async () => {
      const contents = Array.from({ length: 8 }, (_, i) => `content ${i}`);
      const pushed = await Promise.all(contents.map((content) => insertImage(store, repo, 'race', { content })));
      const history = (await historyOf('race')).map(([digest]) => digest);
      assert.deepEqual([...history].sort(), pushed.map(({ digest }) => digest).sort());
      assert.equal((await findTagged(store.reader, repo, 'race'))?.digest, history.at(-1));
      assert.deepEqual(await tagsOf(), [['race', history.at(-1)]]);
    });

    test('concurrent pushes and deletions of one tag leave it consistent or deleted', async () => {
      await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          i % 3 === 0
            ? write((w) => deleteTag(w, repo, 'flicker'))
            : insertImage(store, repo, 'flicker', { content: `${i}` }),
        ),
      );
      const [tag] = await tagsOf();
      const found = await findTagged(store.reader, repo, 'flicker');
      assert.equal(found?.digest, tag?.[1]);
      assert.equal((await historyOf('flicker')).at(-1)?.[0] ?? undefined, found?.digest);
    });

    test('refuses an invalid tag name', async () => {
      for (const name of ['', '-a', 'a/b', 'a'.repeat(129), 'ä']) {
        await assert.rejects(insertImage(store, repo, name), isRegistryError('TAG_INVALID'));
      }
    });

    test('refuses a repo that does not exist', async () => {
      const missing = `${group}/0123456789abcdef`;
      const linking = store.write((tx) => linkBlob(tx, missing, digestOf('x'), 1, 0));
      await assert.rejects(linking, isRegistryError('NAME_UNKNOWN'));
      await assert.rejects(
        insertManifest(store, missing, { mediaType: OCI_INDEX, manifests: [] }),
        isRegistryError('NAME_UNKNOWN'),
      );
    });

    test('deleting a manifest deletes the tags that point to it', async () => {
      const one = await insertImage(store, repo, 'a', { content: 'one' });
      await insertImage(store, repo, 'b', { content: 'one' });
      const two = await insertImage(store, repo, 'c', { content: 'two' });
      assert.equal(await write((w) => deleteManifest(w, repo, one.digest)), true);
      assert.equal(await write((w) => deleteManifest(w, repo, one.digest)), false);
      assert.equal(await findManifest(store.reader, repo, one.digest), undefined);
      assert.deepEqual(await tagsOf(), [['c', two.digest]]);
      assert.deepEqual((await historyOf('a')).at(-1), [null, 'actor', 2000]);
    });

    test('tag names are listed in bytewise order, after a given name', async () => {
      for (const name of ['b', 'B', 'a', '_x', '1.10', '1.9']) await insertImage(store, repo, name);
      assert.deepEqual(await listTagNames(store.reader, repo, { limit: 4 }), ['1.10', '1.9', 'B', '_x']);
      assert.deepEqual(await listTagNames(store.reader, repo, { after: '_x', limit: 4 }), ['a', 'b']);
      assert.equal(await write((w) => deleteTag(w, repo, 'a')), true);
      assert.equal(await write((w) => deleteTag(w, repo, 'a')), false);
      assert.deepEqual(await listTagNames(store.reader, repo, { after: '_x', limit: 4 }), ['b']);
    });

    test('referrers are found by subject and type, even before the subject exists', async () => {
      const subject: Descriptor = descriptorOf(OCI_IMAGE, 'to come');
      const pushReferrer = (artifactType: string, annotations?: Record<string, string>) =>
        insertManifest(store, repo, {
          mediaType: OCI_INDEX,
          manifests: [],
          subject,
          artifactType,
          ...(annotations && { annotations }),
        });
      const signature = await pushReferrer('application/signature', { by: 'me' });
      const sbom = await pushReferrer('application/sbom');
      const found = await findReferrers(store.reader, repo, subject.digest, { limit: 10 });
      const expected = [
        { ...signature, artifactType: 'application/signature', annotations: { by: 'me' } },
        { ...sbom, artifactType: 'application/sbom' },
      ].sort((a, b) => (a.digest < b.digest ? -1 : 1));
      assert.deepEqual(found, expected);
      const after = expected[0]?.digest ?? '';
      assert.deepEqual(
        await findReferrers(store.reader, repo, subject.digest, { limit: 10, after }),
        expected.slice(1),
      );
      const sboms = await findReferrers(store.reader, repo, subject.digest, {
        artifactType: 'application/sbom',
        limit: 10,
      });
      assert.deepEqual(
        sboms.map(({ digest }) => digest),
        [sbom.digest],
      );
      assert.deepEqual(await findReferrers(store.reader, repo, digestOf('other'), { limit: 10 }), []);
    });

    test('a blob belongs to the repos that link it, and can be mounted from them', async () => {
      const [from, digest] = [await createRepo(store, group), digestOf('blob')];
      await store.write((tx) => linkBlob(tx, from, digest, 4, 10));
      assert.deepEqual(await findBlobLink(store.reader, from, digest), { size: 4, linked: 10 });
      assert.equal(await findBlobLink(store.reader, repo, digest), undefined);
      assert.equal(await store.write((tx) => mountBlob(tx, repo, from, digest, 20)), undefined);
      assert.equal((await store.write((tx) => mountBlob(tx, from, repo, digest, 20)))?.size, 4);
      assert.deepEqual(await findBlobLink(store.reader, repo, digest), { size: 4, linked: 20 });
      await store.write((tx) => linkBlob(tx, repo, digest, 4, 30));
      assert.equal((await findBlobLink(store.reader, repo, digest))?.linked, 30);
      assert.equal(await store.write((tx) => unlinkBlob(tx, repo, digest)), true);
      assert.equal(await store.write((tx) => unlinkBlob(tx, repo, digest)), false);
    });
  });
}
