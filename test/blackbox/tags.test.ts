import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { type TagSchema, TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { callerWith } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { digestOf, pushImage, withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { createTag, getTag, listTags, deleteTag } = TagsService.method;
const { createRepo } = ReposService.method;

everywhere('tags', (bench) => {
  let group: string;
  let repo: string;
  let digest: string;

  let repos = 0;
  const newRepo = async (parent = group) =>
    (await bench.api.call(createRepo, { parent, repo: { name: `repo-${++repos}` } })).uid;
  const push = (to: string, tag: string | undefined, content = 'layer', now?: number) =>
    withStore(bench.server, (store) => pushImage(store, to, tag, { content, ...(now !== undefined && { now }) }));
  const tagIt = (tag: MessageInitShape<typeof TagSchema>, parent = repo) =>
    bench.api.call(createTag, { parent, tag: { digest, ...tag } });
  const namesIn = async (request: MessageInitShape<typeof listTags.input>) =>
    (await bench.api.call(listTags, { orderBy: 'name', ...request })).tags.map(({ name }) => name);

  before(async () => {
    group = await bench.newGroup();
    repo = await newRepo();
    ({ digest } = await push(repo, undefined));
  });

  test('a tag names an image of its repo', async () => {
    const tag = await tagIt({ name: 'v1', deprecated: true, bundles: ['fips'] });
    assert.match(tag.uid, new RegExp(`^${repo}/[0-9a-f]{16}$`));
    assert.deepEqual([tag.name, tag.digest, tag.deprecated, tag.bundles], ['v1', digest, true, ['fips']]);
    assert.ok(tag.createTime && tag.updateTime);
    assert.deepEqual(await bench.api.call(getTag, { uid: tag.uid }), tag);
    const [event] = await eventsAbout(bench.db, tag.uid);
    assert.equal(event?.type, 'dev.chainguard.api.platform.registry.tag.created.v1');
    assert.equal(event?.scope, bench.org, 'the events of tags belong to the organization');
    assert.equal(event?.body?.digest, digest);
  });

  test('its name must be free and its image there', async () => {
    await tagIt({ name: 'once' });
    await rejects(tagIt({ name: 'once' }), Code.ALREADY_EXISTS);
    const missing = digestOf('missing');
    await rejects(tagIt({ name: 'a', digest: missing }), Code.INVALID_ARGUMENT, (e) =>
      assert.deepEqual(e.fields, ['digest']),
    );
    // The same image in another repo is not in this one.
    const other = await newRepo();
    await rejects(tagIt({ name: 'a' }, other), Code.INVALID_ARGUMENT);
    await rejects(tagIt({ name: 'a' }, `${group}/0123456789abcdef`), Code.NOT_FOUND);
    await rejects(tagIt({ name: 'a' }, group), Code.NOT_FOUND);
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
      await rejects(tagIt(tag as never), Code.INVALID_ARGUMENT, (error) => assert.deepEqual(error.fields, [field]));
    });
  }

  test('a deleted tag leaves its image, and its name is free again', async () => {
    const { uid } = await tagIt({ name: 'brief' });
    await bench.api.call(deleteTag, { uid });
    await rejects(bench.api.call(getTag, { uid }), Code.NOT_FOUND);
    await rejects(bench.api.call(deleteTag, { uid }), Code.NOT_FOUND);
    const [, event] = await eventsAbout(bench.db, uid);
    assert.equal(event?.type, 'dev.chainguard.api.platform.registry.tag.deleted.v1');
    assert.equal(event?.scope, bench.org);
    assert.notEqual((await tagIt({ name: 'brief' })).uid, uid);
    const history = await bench.db.all<{ digest: string | null }>(
      'SELECT digest FROM tag_history WHERE repo = $1 AND name = $2 ORDER BY id',
      repo,
      'brief',
    );
    assert.deepEqual(
      history.map((row) => row.digest),
      [digest, null, digest],
    );
  });

  test('lists leave out referrers, dates and epochs unless asked for them', async () => {
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
    const page = await bench.api.call(listTags, { uidp, pageSize: 1 });
    assert.equal(page.totalCount, 2n);
    const next = await bench.api.call(listTags, { uidp, pageSize: 1, pageToken: page.nextPageToken });
    assert.notEqual(next.tags[0]?.uid, page.tags[0]?.uid);
    await rejects(
      bench.api.call(listTags, { uidp, pageSize: 1, pageToken: page.nextPageToken, includeDates: true }),
      Code.INVALID_ARGUMENT,
    );
  });

  test('lists by digest, by time and by place', async () => {
    const above = await bench.newGroup(group);
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
    const { totalCount } = await bench.api.call(listTags, { ...below, updatedSince: timestampFromMs(6000) });
    assert.equal(totalCount, 3n);
  });

  test('a push moves a tag, and an annotation marks it', async () => {
    const to = await newRepo();
    const first = await push(to, 'latest', 'one', 5000);
    const [before] = (await bench.api.call(listTags, { uidp: { childrenOf: to } })).tags;
    const second = await withStore(bench.server, (store) =>
      pushImage(store, to, 'latest', {
        content: 'two',
        now: 9000,
        annotations: { 'dev.wharfinger.deprecated': 'true' },
      }),
    );
    const [after, ...more] = (await bench.api.call(listTags, { uidp: { childrenOf: to } })).tags;
    assert.deepEqual(more, []);
    assert.equal(after?.uid, before?.uid);
    assert.deepEqual([before?.digest, before?.deprecated], [first.digest, false]);
    assert.deepEqual([after?.digest, after?.deprecated], [second.digest, true]);
    assert.deepEqual(after?.createTime, before?.createTime);
    assert.deepEqual(after?.updateTime, timestampFromMs(9000));
    await push(to, 'latest', 'three', 9500);
    const [still] = (await bench.api.call(listTags, { uidp: { childrenOf: to } })).tags;
    assert.equal(still?.deprecated, true, 'without the annotation it stays as it was');
  });

  test('only who may can', async () => {
    const { uid } = await tagIt({ name: 'guarded' });
    const viewer = bench.as(await (await callerWith(bench.server, 'viewer', group)).token());
    assert.equal((await viewer.call(getTag, { uid })).uid, uid);
    await rejects(viewer.call(createTag, { parent: repo, tag: { name: 'x', digest } }), Code.PERMISSION_DENIED);
    await rejects(viewer.call(deleteTag, { uid }), Code.PERMISSION_DENIED);
    const elsewhere = bench.as(await (await callerWith(bench.server, 'owner', await bench.newGroup())).token());
    await rejects(elsewhere.call(getTag, { uid }), Code.PERMISSION_DENIED);
    assert.equal((await elsewhere.call(listTags, {})).totalCount, 0n);
  });
});
