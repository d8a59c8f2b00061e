import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { type TagSchema, TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { digestOf, insertImage, withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { createTag, getTag, listTags, deleteTag } = TagsService.method;
const { createRepo } = ReposService.method;

onEveryDatabaseAndWire('tags', (fixture) => {
  let group: string;
  let repo: string;
  let digest: string;

  let repos = 0;
  const newRepo = async (parent = group) =>
    (await fixture.api.call(createRepo, { parent, repo: { name: `repo-${++repos}` } })).uid;
  const push = (to: string, tag: string | undefined, content = 'layer', now?: number) =>
    withStore(fixture.server, (store) => insertImage(store, to, tag, { content, ...(now !== undefined && { now }) }));
  const newTag = (tag: MessageInitShape<typeof TagSchema>, parent = repo) =>
    fixture.api.call(createTag, { parent, tag: { digest, ...tag } });
  const namesIn = async (request: MessageInitShape<typeof listTags.input>) =>
    (await fixture.api.call(listTags, { orderBy: 'name', ...request })).tags.map(({ name }) => name);

  before(async () => {
    group = await fixture.newGroup();
    repo = await newRepo();
    ({ digest } = await push(repo, undefined));
  });

  test('a tag points to an image of its repo', async () => {
    const tag = await newTag({ name: 'v1', deprecated: true, bundles: ['fips'] });
    assert.match(tag.uid, new RegExp(`^${repo}/[0-9a-f]{16}$`));
    assert.deepEqual([tag.name, tag.digest, tag.deprecated, tag.bundles], ['v1', digest, true, ['fips']]);
    assert.ok(tag.createTime && tag.updateTime);
    assert.deepEqual(await fixture.api.call(getTag, { uid: tag.uid }), tag);
    const [event] = await eventsAbout(fixture.db, tag.uid);
    assert.equal(event?.type, 'dev.chainguard.api.platform.registry.tag.created.v1');
    assert.equal(event?.scope, fixture.org, 'the events of tags belong to the organization');
    assert.equal(event?.body?.digest, digest);
  });

  test('the name of a tag must be unused, and its image must exist in the repo', async () => {
    await newTag({ name: 'once' });
    await rejects(newTag({ name: 'once' }), Code.ALREADY_EXISTS);
    const missing = digestOf('missing');
    await rejects(newTag({ name: 'a', digest: missing }), Code.INVALID_ARGUMENT, (e) =>
      assert.deepEqual(e.fields, ['digest']),
    );
    // The same image in another repo is not in this one.
    const other = await newRepo();
    await rejects(newTag({ name: 'a' }, other), Code.INVALID_ARGUMENT);
    await rejects(newTag({ name: 'a' }, `${group}/0123456789abcdef`), Code.NOT_FOUND);
    await rejects(newTag({ name: 'a' }, group), Code.NOT_FOUND);
  });

  for (const [field, tag] of [
    ['name', { name: '' }],
    ['name', { name: '-a' }],
    ['name', { name: 'a'.repeat(129) }],
    ['name', { name: 'a/b' }],
    ['digest', { name: 'a', digest: '' }],
    ['digest', { name: 'a', digest: 'sha256:short' }],
    ['digest', { name: 'a', digest: `md5:${'a'.repeat(32)}` }],
    ['bundles[0]', { name: 'a', bundles: ['fancy'] }],
  ] as const) {
    test(`${field} is refused: ${JSON.stringify(tag).slice(0, 50)}`, async () => {
      await rejects(newTag(tag as never), Code.INVALID_ARGUMENT, (error) => assert.deepEqual(error.fields, [field]));
    });
  }

  test('deleting a tag keeps its image, and its name can be used again', async () => {
    const { uid } = await newTag({ name: 'brief' });
    await fixture.api.call(deleteTag, { uid });
    await rejects(fixture.api.call(getTag, { uid }), Code.NOT_FOUND);
    await rejects(fixture.api.call(deleteTag, { uid }), Code.NOT_FOUND);
    const [, event] = await eventsAbout(fixture.db, uid);
    assert.equal(event?.type, 'dev.chainguard.api.platform.registry.tag.deleted.v1');
    assert.equal(event?.scope, fixture.org);
    assert.notEqual((await newTag({ name: 'brief' })).uid, uid);
    const history = await fixture.db.all<{ digest: string | null }>(
      'SELECT digest FROM tag_history WHERE repo = $1 AND name = $2 ORDER BY id',
      repo,
      'brief',
    );
    assert.deepEqual(
      history.map((row) => row.digest),
      [digest, null, digest],
    );
  });

  test('lists omit referrers, dates and epochs unless they are requested', async () => {
    const parent = await newRepo();
    const names = ['1.2', '1.2-20260801', '1.2-r3', 'latest', 'sha256-ab.sig'];
    for (const name of names) await push(parent, name, name);
    const uidp = { childrenOf: parent };
    assert.deepEqual(await namesIn({ uidp }), ['1.2', 'latest']);
    assert.deepEqual(await namesIn({ uidp, includeEpochs: true }), ['1.2', '1.2-r3', 'latest']);
    assert.deepEqual(await namesIn({ uidp, includeDates: true, includeReferrers: true }), [
      '1.2',
      '1.2-20260801',
      'latest',
      'sha256-ab.sig',
    ]);
    const everything = { includeDates: true, includeReferrers: true, includeEpochs: true };
    assert.deepEqual(await namesIn({ uidp, ...everything }), names);
    assert.deepEqual(await namesIn({ uidp, name: '1.2-r3' }), []);
    assert.deepEqual(await namesIn({ uidp, name: '1.2-r3', includeEpochs: true }), ['1.2-r3']);
    const page = await fixture.api.call(listTags, { uidp, pageSize: 1 });
    assert.equal(page.totalCount, 2n);
    const next = await fixture.api.call(listTags, { uidp, pageSize: 1, pageToken: page.nextPageToken });
    assert.notEqual(next.tags[0]?.uid, page.tags[0]?.uid);
    await rejects(
      fixture.api.call(listTags, { uidp, pageSize: 1, pageToken: page.nextPageToken, includeDates: true }),
      Code.INVALID_ARGUMENT,
    );
  });

  test('tags are filtered by digest, update time and hierarchy', async () => {
    const above = await fixture.newGroup(group);
    const [one, two] = [await newRepo(above), await newRepo(above)];
    const a = await push(one, 'a', 'same', 5000);
    await push(one, 'b', 'same', 6000);
    await push(one, 'c', 'other', 7000);
    await push(two, 'd', 'same', 8000);
    const below = { uidp: { descendantsOf: above } };
    assert.deepEqual(await namesIn({ ...below, digest: a.digest }), ['a', 'b', 'd']);
    assert.deepEqual(await namesIn({ uidp: { childrenOf: one }, digest: a.digest }), ['a', 'b']);
    assert.deepEqual(await namesIn({ ...below, digest: digestOf('none') }), []);
    for (const orderBy of ['name', 'uid', 'updated_at']) {
      const since = (await namesIn({ ...below, updatedSince: timestampFromMs(6000), orderBy })).sort();
      assert.deepEqual(since, ['b', 'c', 'd'], orderBy);
    }
    const between = { seconds: 6n, nanos: 1 };
    assert.deepEqual(await namesIn({ ...below, updatedSince: between, digest: a.digest }), ['d']);
    assert.deepEqual(await namesIn({ ...below, orderBy: 'update_time desc' }), ['d', 'c', 'b', 'a']);
    assert.deepEqual(await namesIn({ uidp: { childrenOf: above } }), [], 'tags are children of repos only');
    const { totalCount } = await fixture.api.call(listTags, { ...below, updatedSince: timestampFromMs(6000) });
    assert.equal(totalCount, 3n);
  });

  test('a push moves a tag, and an annotation deprecates it', async () => {
    const to = await newRepo();
    const first = await push(to, 'latest', 'one', 5000);
    const [before] = (await fixture.api.call(listTags, { uidp: { childrenOf: to } })).tags;
    const second = await withStore(fixture.server, (store) =>
      insertImage(store, to, 'latest', {
        content: 'two',
        now: 9000,
        annotations: { 'dev.wharfinger.deprecated': 'true' },
      }),
    );
    const [after, ...more] = (await fixture.api.call(listTags, { uidp: { childrenOf: to } })).tags;
    assert.deepEqual(more, []);
    assert.equal(after?.uid, before?.uid);
    assert.deepEqual([before?.digest, before?.deprecated], [first.digest, false]);
    assert.deepEqual([after?.digest, after?.deprecated], [second.digest, true]);
    assert.deepEqual(after?.createTime, before?.createTime);
    assert.deepEqual(after?.updateTime, timestampFromMs(9000));
    await push(to, 'latest', 'three', 9500);
    const [still] = (await fixture.api.call(listTags, { uidp: { childrenOf: to } })).tags;
    assert.equal(still?.deprecated, true, 'a push without the annotation does not change it');
  });

  test('each method needs its capability', async () => {
    const { uid } = await newTag({ name: 'guarded' });
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
    assert.equal((await viewer.call(getTag, { uid })).uid, uid);
    await rejects(viewer.call(createTag, { parent: repo, tag: { name: 'x', digest } }), Code.PERMISSION_DENIED);
    await rejects(viewer.call(deleteTag, { uid }), Code.PERMISSION_DENIED);
    const otherOwner = fixture.as(
      await (await callerWithRole(fixture.server, 'owner', await fixture.newGroup())).token(),
    );
    await rejects(otherOwner.call(getTag, { uid }), Code.PERMISSION_DENIED);
    assert.equal((await otherOwner.call(listTags, {})).totalCount, 0n);
  });
});
