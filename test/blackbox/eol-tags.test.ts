import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import * as v1 from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import {
  type VersionLifecycleSchema,
  VersionLifecyclesService,
} from '../../src/contract/gen/wharfinger/registry/v1/version_lifecycles_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { insertImage, withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { method } = VersionLifecyclesService;
const { listEolTags } = v1.Registry.method;

const DAY = 24 * 3_600_000;
const dateIn = (days: number): string => new Date(Date.now() + days * DAY).toISOString().slice(0, 10);

onEveryDatabaseAndWire('tags and their end of life', (fixture) => {
  const { createTag } = TagsService.method;

  async function newRepo(name: string, tagNames: readonly string[]) {
    const group = await fixture.newGroup();
    const repo = await fixture.api.call(ReposService.method.createRepo, { parent: group, repo: { name } });
    const { digest } = await withStore(fixture.server, (store) => insertImage(store, repo.uid));
    await Promise.all(
      tagNames.map((tag) => fixture.api.call(createTag, { parent: repo.uid, tag: { name: tag, digest } })),
    );
    return { group, repo: repo.uid, digest };
  }

  const declare = (repo: string, versionLifecycle: MessageInitShape<typeof VersionLifecycleSchema>) =>
    fixture.api.call(method.createVersionLifecycle, { parent: repo, versionLifecycle });

  const eolTags = async (filter: MessageInitShape<typeof v1.EolTagFilterSchema>) => {
    const { items } = await fixture.api.call(listEolTags, filter);
    return new Map(items.map((tag) => [tag.name, tag]));
  };

  test('without declarations, every tag is active and has no grace period', async () => {
    const { repo } = await newRepo('plain', ['latest', '1.2', '1.2-20260101', '1.2-r3', 'sha256-ab']);
    const tags = await eolTags({ uidp: { childrenOf: repo } });
    assert.deepEqual([...tags.keys()].sort(), ['1.2', '1.2-20260101', '1.2-r3', 'latest', 'sha256-ab']);
    for (const tag of tags.values()) {
      assert.equal(tag.mainPackageName, 'plain');
      assert.equal(tag.tagStatus, v1.EolTagStatus.TAG_ACTIVE);
      assert.equal(tag.graceStatus, v1.EolGracePeriodStatus.GRACE_NOT_ELIGIBLE);
      assert.equal(tag.gracePeriodExpiryDate, undefined);
      assert.deepEqual([tag.mainPackageVersion?.exists, tag.mainPackageVersion?.eolDate], [false, '']);
    }
  });

  test('a tag has the status of the longest declared version that its name begins with', async () => {
    const names = ['1', '2.1', 'v2.1.4-dev', '2.10', '3.0', '3.0.1', '4.0', '5.0', 'latest'];
    const { repo } = await newRepo('python', names);
    const released = dateIn(-900);
    await declare(repo, { version: '1', eolDate: dateIn(-400), releaseDate: released });
    await declare(repo, {
      ...{ version: '2.1', mainPackageName: 'python-2.1', releaseDate: released, fips: true, ltsDate: dateIn(-500) },
      ...{ eolDate: dateIn(-10), gracePeriodExpiryDate: dateIn(30) },
    });
    await declare(repo, { version: '3', eolDate: dateIn(-40), gracePeriodExpiryDate: dateIn(-1) });
    await declare(repo, { version: '3.0.1', eolDate: dateIn(-4), gracePeriodExpiryDate: dateIn(4), eolBroken: true });
    await declare(repo, { version: 'v4.0', eolDate: dateIn(20), gracePeriodExpiryDate: dateIn(40) });
    await declare(repo, { version: '5', eolDate: dateIn(20) });

    const tags = await eolTags({ uidp: { childrenOf: repo } });
    const { TAG_ACTIVE, TAG_IN_GRACE, TAG_INACTIVE } = v1.EolTagStatus;
    const { GRACE_ACTIVE, GRACE_BROKEN, GRACE_ELIGIBLE, GRACE_EXPIRED, GRACE_NOT_ELIGIBLE } = v1.EolGracePeriodStatus;
    const expected = {
      '1': ['1', TAG_INACTIVE, GRACE_NOT_ELIGIBLE],
      '2.1': ['2.1', TAG_IN_GRACE, GRACE_ACTIVE],
      'v2.1.4-dev': ['2.1', TAG_IN_GRACE, GRACE_ACTIVE],
      '2.10': ['', TAG_ACTIVE, GRACE_NOT_ELIGIBLE],
      '3.0': ['3', TAG_INACTIVE, GRACE_EXPIRED],
      '3.0.1': ['3.0.1', TAG_INACTIVE, GRACE_BROKEN],
      '4.0': ['v4.0', TAG_ACTIVE, GRACE_ELIGIBLE],
      '5.0': ['5', TAG_ACTIVE, GRACE_NOT_ELIGIBLE],
      latest: ['', TAG_ACTIVE, GRACE_NOT_ELIGIBLE],
    };
    assert.deepEqual(
      Object.fromEntries(
        [...tags].map(([name, tag]) => [name, [tag.mainPackageVersion?.version, tag.tagStatus, tag.graceStatus]]),
      ),
      expected,
    );
    const { mainPackageName, mainPackageVersion: version, gracePeriodExpiryDate: expiry } = tags.get('2.1') ?? {};
    assert.deepEqual(
      [mainPackageName, version?.exists, version?.releaseDate, version?.eolDate, version?.fips, version?.eolBroken],
      ['python-2.1', true, released, dateIn(-10), true, false],
    );
    assert.deepEqual([version?.lts, version?.legacyLts], [true, dateIn(-500)]);
    assert.equal(expiry && timestampDate(expiry).toISOString(), `${dateIn(30)}T00:00:00.000Z`);
    assert.equal(tags.get('1')?.mainPackageName, 'python');
  });

  test('a deprecated tag is inactive, whatever is declared', async () => {
    const { repo, digest } = await newRepo('old', []);
    for (const name of ['1.0', '2.0']) {
      await fixture.api.call(createTag, { parent: repo, tag: { name, digest, deprecated: true } });
    }
    const eolDate = dateIn(20);
    await declare(repo, { version: '2', eolDate });
    const tags = await eolTags({ uidp: { childrenOf: repo } });
    for (const { tagStatus } of tags.values()) assert.equal(tagStatus, v1.EolTagStatus.TAG_INACTIVE);
    assert.match(tags.get('1.0')?.mainPackageVersion?.eolDate ?? '', /^20\d\d-\d\d-\d\d$/);
    assert.equal(tags.get('2.0')?.mainPackageVersion?.eolDate, eolDate);
  });

  test('tags are listed in pages and by all filters, to callers who may list tags', async () => {
    const names = ['1.0', '1.1', '1.2', '1.2-20260101', '1.2-r1'];
    const { group, repo } = await newRepo('paged', names);
    await declare(repo, { version: '1.2', eolDate: dateIn(-1) });
    const page = (filter: object) => fixture.api.call(listEolTags, { uidp: { descendantsOf: group }, ...filter });
    const namesOf = ({ items }: v1.EolTagList): string[] => items.map(({ name }) => name);

    const seen: string[] = [];
    let pageToken = '';
    for (const size of [2, 2, 1]) {
      const next = await page({ pageSize: 2n, pageToken });
      assert.equal(next.items.length, size);
      seen.push(...namesOf(next));
      pageToken = next.nextPageToken;
    }
    assert.equal(pageToken, '');
    assert.deepEqual(seen.sort(), names);
    assert.deepEqual(namesOf(await page({ excludeDates: true })).sort(), ['1.0', '1.1', '1.2', '1.2-r1']);
    assert.deepEqual(namesOf(await page({ excludeDates: true, excludeEpochs: true })).sort(), ['1.0', '1.1', '1.2']);
    assert.deepEqual(namesOf(await page({ name: '1.2-r1' })), ['1.2-r1']);
    assert.equal((await page({ name: '1.2' })).items[0]?.tagStatus, v1.EolTagStatus.TAG_INACTIVE);
    const error = await rejects(page({ pageSize: -1n }), Code.INVALID_ARGUMENT);
    assert.deepEqual(error.fields, ['page_size']);

    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'registry.pull', group)).token());
    assert.equal((await viewer.call(listEolTags, { uidp: { childrenOf: repo } })).items.length, names.length);
  });

  test('a list without a page size has up to 1,000 tags', async () => {
    const names = Array.from({ length: 230 }, (_, i) => `9.${i}`);
    const { repo } = await newRepo('many', names);
    await declare(repo, { version: '9.229', eolDate: dateIn(-1) });
    const tags = await eolTags({ uidp: { childrenOf: repo } });
    assert.equal(tags.size, names.length);
    const inactive = [...tags.values()].filter(({ tagStatus }) => tagStatus === v1.EolTagStatus.TAG_INACTIVE);
    assert.deepEqual(
      inactive.map(({ name }) => name),
      ['9.229'],
    );
  });

  test('life cycles can be created, read, listed, updated and deleted, and end with their repo', async () => {
    const { group, repo } = await newRepo('declared', []);
    const made = await declare(repo, { version: '1.2', eolDate: '2028-10-31' });
    assert.deepEqual(await fixture.api.call(method.getVersionLifecycle, { uid: made.uid }), made);
    const second = await declare(repo, { version: '1.3' });
    const list = (request: object) =>
      fixture.api.call(method.listVersionLifecycles, { uidp: { childrenOf: repo }, ...request });
    const { versionLifecycles, totalCount } = await list({ orderBy: 'version desc' });
    assert.deepEqual([versionLifecycles, totalCount], [[second, made], 2n]);
    assert.deepEqual((await list({ version: '1.2' })).versionLifecycles, [made]);

    const changed = await fixture.api.call(method.updateVersionLifecycle, {
      versionLifecycle: { uid: made.uid, gracePeriodExpiryDate: '2029-04-30' },
      updateMask: { paths: ['grace_period_expiry_date'] },
    });
    assert.deepEqual([changed.eolDate, changed.gracePeriodExpiryDate], ['2028-10-31', '2029-04-30']);
    await fixture.api.call(method.deleteVersionLifecycle, { uid: second.uid });
    await rejects(fixture.api.call(method.getVersionLifecycle, { uid: second.uid }), Code.NOT_FOUND);
    const types = (await eventsAbout(fixture.db, made.uid)).map(({ type }) => type);
    assert.deepEqual(types, [
      'dev.wharfinger.registry.version_lifecycle.created.v1',
      'dev.wharfinger.registry.version_lifecycle.updated.v1',
    ]);
    await fixture.api.call(ReposService.method.deleteRepo, { uid: repo });
    const left = await fixture.api.call(method.listVersionLifecycles, { uidp: { descendantsOf: group } });
    assert.deepEqual(left.versionLifecycles, []);
  });

  test('life cycles that cannot be are refused with the field', async () => {
    const { group, repo } = await newRepo('refused', []);
    for (const [field, lifecycle] of [
      ['version', {}],
      ['version', { version: '-1' }],
      ['version', { version: '1'.repeat(65) }],
      ['eol_date', { version: '1', eolDate: '2026-02-30' }],
      ['release_date', { version: '1', releaseDate: '02.10.2023' }],
      ['lts_date', { version: '1', ltsDate: '2026' }],
      ['eol_date', { version: '1', releaseDate: '2026-02-02', eolDate: '2026-02-01' }],
      ['grace_period_expiry_date', { version: '1', gracePeriodExpiryDate: '2026-02-01' }],
      ['grace_period_expiry_date', { version: '1', eolDate: '2026-02-01', gracePeriodExpiryDate: '2026-02-01' }],
    ] as const) {
      const error = await rejects(declare(repo, lifecycle), Code.INVALID_ARGUMENT);
      assert.deepEqual(
        error.fields.map((name: string) => name.replace(/^version_lifecycle\./, '')),
        [field],
        JSON.stringify(lifecycle),
      );
    }
    await declare(repo, { version: '1.0' });
    await rejects(declare(repo, { version: '1.0' }), Code.ALREADY_EXISTS);
    await rejects(declare(repo, { version: 'v1.0' }), Code.ALREADY_EXISTS);
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
    const refused = viewer.call(method.createVersionLifecycle, { parent: repo, versionLifecycle: { version: '2' } });
    await rejects(refused, Code.PERMISSION_DENIED);
    assert.equal((await viewer.call(method.listVersionLifecycles, { uidp: { childrenOf: repo } })).totalCount, 1n);
  });
});
