import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { assertConsistent } from '../../../../test/support/consistency.ts';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import {
  type Descriptor,
  descriptorOf,
  digestOf,
  OCI_CONFIG,
  OCI_IMAGE,
  OCI_INDEX,
  OCI_LAYER,
  push,
  pushImage,
} from '../../../../test/support/images.ts';
import type { Tag } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { findChildren } from '../../../resource/read.ts';
import type { Store } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import { groupAt, repoIn } from '../repo.testing.ts';
import { deleteTag, listTagNames, type RegistryWrite } from '../tags/tag-targets.ts';
import { tags } from '../tags/tags.ts';
import { blobLink, linkBlob, mountBlob, unlinkBlob } from './blob-links.ts';
import { deleteManifest, findManifest, findTagged } from './manifests.ts';
import { referrers } from './referrers.ts';

const isRegistryError = (code: string) => (error: unknown) => error instanceof RegistryError && error.code === code;

for (const database of databases) {
  describe(`manifests on ${database.name}`, () => {
    let store: Store;
    let group: string;
    let repo: string;

    before(async () => {
      store = await temporaryStore(database);
      group = await groupAt(store, 'org', 'team');
    });
    beforeEach(async () => {
      repo = await repoIn(store, group);
    });
    after(async () => {
      await assertConsistent(store.reader);
      await store.close();
    });

    const write = <T>(work: (write: RegistryWrite) => Promise<T>): Promise<T> =>
      store.write((db) => work({ db, now: 2000, actor: 'somebody' }));
    const tagsOf = async () =>
      (await findChildren(store.reader, tags, repo)).map(({ message }) => [
        (message as Tag).name,
        (message as Tag).digest,
      ]);
    const historyOf = async (name: string) =>
      (
        await store.reader.all<{ digest: string | null; actor: string; changed: number }>(
          'SELECT digest, actor, changed FROM tag_history WHERE repo = $1 AND name = $2 ORDER BY id',
          repo,
          name,
        )
      ).map(({ digest, actor, changed }) => [digest, actor, changed]);

    test('come back byte for byte, by digest and by tag, in their repo only', async () => {
      const { digest } = await pushImage(store, repo, 'latest');
      const found = await findManifest(store.reader, repo, digest);
      assert.equal(digestOf(found?.bytes ?? ''), digest);
      assert.equal(found?.mediaType, OCI_IMAGE);
      assert.deepEqual(await findTagged(store.reader, repo, 'latest'), found);
      assert.equal(await findTagged(store.reader, repo, 'other'), undefined);
      const other = await repoIn(store, group);
      assert.equal(await findManifest(store.reader, other, digest), undefined);
      assert.equal(await findTagged(store.reader, other, 'latest'), undefined);
    });

    test('need their blobs in the same repo, and say which are missing', async () => {
      const other = await repoIn(store, group);
      await pushImage(store, other, undefined, { content: 'elsewhere' });
      const config = descriptorOf(OCI_CONFIG, '{}');
      const layers = ['elsewhere', 'nowhere'].map((content) => descriptorOf(OCI_LAYER, content));
      await store.write((tx) => linkBlob(tx, repo, config.digest, config.size, 0));
      const refused = push(store, repo, { mediaType: OCI_IMAGE, config, layers }, 'latest');
      await assert.rejects(refused, (error: RegistryError) => {
        assert.equal(error.code, 'MANIFEST_BLOB_UNKNOWN');
        assert.deepEqual(error.detail?.digests, layers.map(({ digest }) => digest).sort());
        return true;
      });
      assert.deepEqual(await tagsOf(), []);

      const foreign = { ...descriptorOf('application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', 'x'), size: 9e15 };
      await push(store, repo, { mediaType: OCI_IMAGE, config, layers: Array(5).fill(foreign) });
    });

    test('an index needs its children in the same repo', async () => {
      const { mediaType, digest, size } = await pushImage(store, repo);
      const missing = descriptorOf(OCI_IMAGE, 'missing');
      const manifests = [{ mediaType, digest, size }];
      await push(store, repo, { mediaType: OCI_INDEX, manifests });
      await assert.rejects(
        push(store, repo, { mediaType: OCI_INDEX, manifests: [...manifests, missing] }),
        isRegistryError('MANIFEST_BLOB_UNKNOWN'),
      );
    });

    test('a manifest with hundreds of layers is taken, however often it names one', async () => {
      const layers = Array.from({ length: 130 }, (_, i) => descriptorOf(OCI_LAYER, `layer ${i % 120}`));
      const config = descriptorOf(OCI_CONFIG, '{}');
      await store.write(async (tx) => {
        for (const { digest, size } of [config, ...layers]) await linkBlob(tx, repo, digest, size, 0);
      });
      const { digest } = await push(store, repo, { mediaType: OCI_IMAGE, config, layers });
      const links = await store.reader.all('SELECT target FROM manifest_link WHERE manifest = $1', digest);
      assert.equal(links.length, 121);
    });

    test('a tag moves with each push, and its history keeps every move', async () => {
      const one = await pushImage(store, repo, 'latest', { content: 'one', now: 1, actor: 'a' });
      await pushImage(store, repo, 'latest', { content: 'one', now: 2, actor: 'b' });
      const two = await pushImage(store, repo, 'latest', { content: 'two', now: 3, actor: 'c' });
      assert.deepEqual(await tagsOf(), [['latest', two.digest]]);
      assert.equal((await findTagged(store.reader, repo, 'latest'))?.digest, two.digest);
      assert.deepEqual(await historyOf('latest'), [
        [one.digest, 'a', 1],
        [two.digest, 'c', 3],
      ]);
    });

    test('of pushes to one tag at once the last wins, and history keeps them all', async () => {
      const contents = Array.from({ length: 8 }, (_, i) => `content ${i}`);
      const pushed = await Promise.all(contents.map((content) => pushImage(store, repo, 'race', { content })));
      const history = (await historyOf('race')).map(([digest]) => digest);
      assert.deepEqual([...history].sort(), pushed.map(({ digest }) => digest).sort());
      assert.equal((await findTagged(store.reader, repo, 'race'))?.digest, history.at(-1));
      assert.deepEqual(await tagsOf(), [['race', history.at(-1)]]);
    });

    test('pushes and deletions of one tag at once leave it whole or gone', async () => {
      await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          i % 3 === 0
            ? write((w) => deleteTag(w, repo, 'flicker'))
            : pushImage(store, repo, 'flicker', { content: `${i}` }),
        ),
      );
      const [tag] = await tagsOf();
      const found = await findTagged(store.reader, repo, 'flicker');
      assert.equal(found?.digest, tag?.[1]);
      assert.equal((await historyOf('flicker')).at(-1)?.[0] ?? undefined, found?.digest);
    });

    test('a tag must have the name of a tag', async () => {
      for (const name of ['', '-a', 'a/b', 'a'.repeat(129), 'ä']) {
        await assert.rejects(pushImage(store, repo, name), isRegistryError('TAG_INVALID'));
      }
    });

    test('nothing goes into a repo that is not there', async () => {
      const gone = `${group}/0123456789abcdef`;
      const linking = store.write((tx) => linkBlob(tx, gone, digestOf('x'), 1, 0));
      await assert.rejects(linking, isRegistryError('NAME_UNKNOWN'));
      await assert.rejects(push(store, gone, { mediaType: OCI_INDEX, manifests: [] }), isRegistryError('NAME_UNKNOWN'));
    });

    test('deleting a manifest takes the tags along that point to it', async () => {
      const one = await pushImage(store, repo, 'a', { content: 'one' });
      await pushImage(store, repo, 'b', { content: 'one' });
      const two = await pushImage(store, repo, 'c', { content: 'two' });
      assert.equal(await write((w) => deleteManifest(w, repo, one.digest)), true);
      assert.equal(await write((w) => deleteManifest(w, repo, one.digest)), false);
      assert.equal(await findManifest(store.reader, repo, one.digest), undefined);
      assert.deepEqual(await tagsOf(), [['c', two.digest]]);
      assert.deepEqual((await historyOf('a')).at(-1), [null, 'somebody', 2000]);
    });

    test('names of tags are listed in bytewise order, from where one was', async () => {
      for (const name of ['b', 'B', 'a', '_x', '1.10', '1.9']) await pushImage(store, repo, name);
      assert.deepEqual(await listTagNames(store.reader, repo, { limit: 4 }), ['1.10', '1.9', 'B', '_x']);
      assert.deepEqual(await listTagNames(store.reader, repo, { after: '_x', limit: 4 }), ['a', 'b']);
      assert.equal(await write((w) => deleteTag(w, repo, 'a')), true);
      assert.equal(await write((w) => deleteTag(w, repo, 'a')), false);
      assert.deepEqual(await listTagNames(store.reader, repo, { after: '_x', limit: 4 }), ['b']);
    });

    test('referrers are found by their subject and type, also before the subject is there', async () => {
      const subject: Descriptor = descriptorOf(OCI_IMAGE, 'to come');
      const about = (artifactType: string, annotations?: Record<string, string>) =>
        push(store, repo, {
          mediaType: OCI_INDEX,
          manifests: [],
          subject,
          artifactType,
          ...(annotations && { annotations }),
        });
      const signature = await about('application/signature', { by: 'me' });
      const sbom = await about('application/sbom');
      const found = await referrers(store.reader, repo, subject.digest, { limit: 10 });
      const expected = [
        { ...signature, artifactType: 'application/signature', annotations: { by: 'me' } },
        { ...sbom, artifactType: 'application/sbom' },
      ].sort((a, b) => (a.digest < b.digest ? -1 : 1));
      assert.deepEqual(found, expected);
      const after = expected[0]?.digest ?? '';
      assert.deepEqual(await referrers(store.reader, repo, subject.digest, { limit: 10, after }), expected.slice(1));
      const sboms = await referrers(store.reader, repo, subject.digest, {
        artifactType: 'application/sbom',
        limit: 10,
      });
      assert.deepEqual(
        sboms.map(({ digest }) => digest),
        [sbom.digest],
      );
      assert.deepEqual(await referrers(store.reader, repo, digestOf('other'), { limit: 10 }), []);
    });

    test('a blob is in the repos that link it, and can be mounted from there', async () => {
      const [from, digest] = [await repoIn(store, group), digestOf('blob')];
      await store.write((tx) => linkBlob(tx, from, digest, 4, 10));
      assert.deepEqual(await blobLink(store.reader, from, digest), { size: 4, linked: 10 });
      assert.equal(await blobLink(store.reader, repo, digest), undefined);
      assert.equal(await store.write((tx) => mountBlob(tx, repo, from, digest, 20)), undefined);
      assert.equal((await store.write((tx) => mountBlob(tx, from, repo, digest, 20)))?.size, 4);
      assert.deepEqual(await blobLink(store.reader, repo, digest), { size: 4, linked: 20 });
      await store.write((tx) => linkBlob(tx, repo, digest, 4, 30));
      assert.equal((await blobLink(store.reader, repo, digest))?.linked, 30);
      assert.equal(await store.write((tx) => unlinkBlob(tx, repo, digest)), true);
      assert.equal(await store.write((tx) => unlinkBlob(tx, repo, digest)), false);
    });
  });
}
