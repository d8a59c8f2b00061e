import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import * as v1 from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { callerWith } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { pushImage, withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { method } = v1.Registry;
const DAY = 24 * 3_600_000;

everywhere('the registry in v1', (bench) => {
  const newRepo = async (parent: string, repo: { name: string; readme?: string }) =>
    bench.api.call(method.createRepo, { parentId: parent, repo, preventExisting: true });

  test('a repo has its README in the same message, and v2 has it apart', async () => {
    const group = await bench.newGroup();
    const repo = await newRepo(group, { name: 'documented', readme: '# One' });
    assert.equal(repo.readme, '# One');
    const readmeOf = async () => (await bench.api.call(ReposService.method.getRepoReadme, { uid: repo.id })).content;
    assert.equal(await readmeOf(), '# One');
    const { items } = await bench.api.call(method.listRepos, { uidp: { childrenOf: group } });
    assert.deepEqual(items, [repo]);
    const owner = bench.as(await (await callerWith(bench.server, 'owner', group)).token());
    const changed = await owner.call(method.updateRepo, { ...repo, readme: '# Two' });
    assert.deepEqual([changed.readme, await readmeOf()], ['# Two', '# Two']);
    const types = (await eventsAbout(bench.db, repo.id)).map(({ type, bodyType }) => [
      type.split('.').at(-2),
      bodyType,
    ]);
    assert.deepEqual(types, [
      ['created', 'chainguard.platform.registry.Repo'],
      ['updated', 'chainguard.platform.registry.Repo'],
    ]);
    assert.equal((await eventsAbout(bench.db, repo.id)).at(-1)?.body?.readme, '# Two');
    const refused = await rejects(
      owner.call(method.updateRepo, { ...repo, readme: '<script>x</script>' }),
      Code.INVALID_ARGUMENT,
    );
    assert.deepEqual(refused.fields, ['readme']);
    await owner.call(method.updateRepo, { id: repo.id, name: repo.name });
    assert.equal(await readmeOf(), '', 'a PUT replaces all');
  });

  test('a repo that is there is as good as a new one, unless that is to be prevented', async () => {
    const parentId = await bench.newGroup();
    const repo = await newRepo(parentId, { name: 'twice', readme: 'kept' });
    const again = await bench.api.call(method.createRepo, { parentId, repo: { name: 'twice' } });
    assert.deepEqual(again, repo);
    assert.equal((await eventsAbout(bench.db, repo.id)).length, 1);
    await rejects(newRepo(parentId, { name: 'twice' }), Code.ALREADY_EXISTS);
  });

  test('fields are refused under the names that v1 gives them', async () => {
    const group = await bench.newGroup();
    const bad = { name: 'UPPER', bundles: ['none'] };
    const error = await rejects(newRepo(group, bad), Code.INVALID_ARGUMENT);
    assert.deepEqual(error.fields, ['name', 'bundles[0]']);
    await rejects(bench.api.call(method.updateRepo, { id: `${group}/${'0'.repeat(16)}`, name: 'x' }), Code.NOT_FOUND);
    assert.deepEqual((await bench.api.call(method.listRepos, { id: `${group}/${'0'.repeat(16)}` })).items, []);
  });

  test('followers are counted', async () => {
    const group = await bench.newGroup();
    const source = await newRepo(group, { name: 'source' });
    for (const name of ['one', 'two']) {
      const repo = { name, syncConfig: { source: source.id } };
      await bench.api.call(method.createRepo, { parentId: group, repo });
    }
    assert.equal((await bench.api.call(method.getRepoCountBySource, { id: source.id })).count, 2n);
  });

  test('tags: listed with all their kinds, summed up, changed, and with a history', async () => {
    const group = await bench.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'tagged' });
    const [first, second] = await withStore(bench.server, async (store) => {
      const one = await pushImage(store, repoId, '1.9', { content: 'one', now: 1 * DAY });
      await pushImage(store, repoId, 'v1.10.0', { content: 'one', now: 2 * DAY });
      await pushImage(store, repoId, '1.9-20260101', { content: 'one', now: 3 * DAY });
      await pushImage(store, repoId, '1.9-r2', { content: 'one', now: 4 * DAY });
      const two = await pushImage(store, repoId, '1.9', { content: 'two', now: 5 * DAY });
      return [one.digest, two.digest];
    });
    const list = async (filter: object) =>
      (await bench.api.call(method.listTags, { uidp: { childrenOf: repoId }, ...filter })).items;
    assert.deepEqual((await list({})).map(({ name }) => name).sort(), ['1.9', '1.9-20260101', '1.9-r2', 'v1.10.0']);
    const plain = await list({ excludeDates: true, excludeEpochs: true });
    assert.deepEqual(plain.map(({ name }) => name).sort(), ['1.9', 'v1.10.0']);
    assert.equal((await list({ digest: second })).length, 1);
    assert.equal((await list({ updatedSince: timestampFromMs(4 * DAY) })).length, 2);

    const summary = await bench.api.call(method.getRepoTagsSummary, { repoId, excludeDates: true });
    assert.deepEqual([summary.tagCount, summary.latestTag?.name, summary.latestVersion], [3n, '1.9', 'v1.10.0']);
    assert.equal(summary.lastUpdated && timestampMs(summary.lastUpdated), 5 * DAY);
    assert.equal((await bench.api.call(method.getUpdateStatus, { repoId })).recentlyUpdated, false);

    const tag = plain.find(({ name }) => name === '1.9') ?? assert.fail();
    const history = async (range: object = {}) =>
      (await bench.api.call(method.listTagHistory, { parentId: tag.id, ...range })).items.map(({ digest }) => digest);
    assert.deepEqual(await history(), [second, first]);
    assert.deepEqual(await history({ end: timestampFromMs(4 * DAY) }), [first]);
    assert.deepEqual(await history({ start: timestampFromMs(4 * DAY) }), [second]);

    const changed = await bench.api.call(method.updateTag, { ...tag, digest: first, bundles: ['fips'] });
    assert.deepEqual([changed.digest, changed.bundles, changed.name], [first, ['fips'], '1.9']);
    assert.deepEqual(await history(), [first, second, first]);
    assert.equal((await bench.api.call(method.getUpdateStatus, { repoId })).recentlyUpdated, true);
    const event = (await eventsAbout(bench.db, tag.id)).at(-1);
    assert.deepEqual(
      [event?.type, event?.scope, event?.bodyType],
      ['dev.chainguard.api.platform.registry.tag.updated.v1', bench.org, 'chainguard.platform.registry.Tag'],
    );
    for (const [field, bad] of [
      ['name', { name: 'other' }],
      ['digest', { digest: 'sha256:short' }],
      ['digest', { digest: '' }],
      ['digest', { digest: `sha256:${'0'.repeat(64)}` }],
      ['bundles[0]', { bundles: ['none'] }],
    ] as [string, { name?: string; digest?: string; bundles?: string[] }][]) {
      const error = await rejects(bench.api.call(method.updateTag, { ...tag, ...bad }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, [field]);
    }
    await rejects(bench.api.call(method.updateTag, { ...tag, id: `${repoId}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
  });

  test('tags at the end of their life, page by page', async () => {
    const group = await bench.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'old' });
    const { digest } = await withStore(bench.server, (store) => pushImage(store, repoId, 'current'));
    const names = ['1.0', '1.1', '1.2', '1.2-20260101'];
    for (const name of names) {
      await bench.api.call(method.createTag, { repoId, tag: { name, digest, deprecated: true } });
    }
    const page = (filter: object) => bench.api.call(method.listEolTags, { uidp: { descendantsOf: group }, ...filter });
    const all = await page({});
    assert.deepEqual(all.items.map(({ name }) => name).sort(), names);
    const [one] = all.items;
    assert.deepEqual([one?.mainPackageName, one?.tagStatus], ['old', v1.EolTagStatus.TAG_INACTIVE]);
    assert.match(one?.mainPackageVersion?.eolDate ?? '', /^20\d\d-\d\d-\d\d$/);
    assert.equal((await page({ excludeDates: true })).items.length, 3);
    assert.equal((await page({ name: '1.1' })).items.length, 1);
    const first = await page({ pageSize: 3n });
    assert.deepEqual([first.items.length, first.nextPageToken !== ''], [3, true]);
    const rest = await page({ pageSize: 3n, pageToken: first.nextPageToken });
    assert.deepEqual([rest.items.length, rest.nextPageToken], [1, '']);
    await rejects(page({ pageSize: -1n }), Code.INVALID_ARGUMENT);

    const [tag] = (await bench.api.call(method.listTags, { uidp: { childrenOf: repoId }, name: '1.0' })).items;
    await bench.api.call(method.updateTag, { ...(tag ?? assert.fail()), deprecated: false });
    assert.equal((await page({})).items.length, 3);
    const stranger = bench.as(await (await callerWith(bench.server, 'viewer', await bench.newGroup())).token());
    const unseen = await stranger.call(method.listEolTags, { uidp: { descendantsOf: group } });
    assert.deepEqual(unseen.items, []);
  });

  test('deployments: one for a repo', async () => {
    const group = await bench.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'deployed' });
    await rejects(bench.api.call(method.getDeployment, { repoId }), Code.NOT_FOUND);
    const charts = [{ repo: 'https://charts.example.com', chart: 'app' }, { repo: 'oci://example.com/charts' }];
    await rejects(bench.api.call(method.updateDeployment, { repoId, charts }), Code.NOT_FOUND);
    const made = await bench.api.call(method.createDeployment, { parentId: repoId, charts });
    assert.deepEqual(
      [made.id, made.charts.map(({ repo, chart }) => [repo, chart])],
      [
        repoId,
        [
          ['https://charts.example.com', 'app'],
          ['oci://example.com/charts', undefined],
        ],
      ],
    );
    assert.deepEqual(await bench.api.call(method.getDeployment, { repoId }), made);
    await rejects(bench.api.call(method.createDeployment, { parentId: repoId, charts }), Code.ALREADY_EXISTS);
    const changed = await bench.api.call(method.updateDeployment, { repoId, charts: [{ repo: 'http://localhost:1' }] });
    assert.deepEqual(await bench.api.call(method.getDeployment, { repoId }), changed);
    await bench.api.call(method.updateRepo, { id: repoId, name: 'deployed', description: 'still' });
    assert.deepEqual(
      await bench.api.call(method.getDeployment, { repoId }),
      changed,
      'it outlives a change of its repo',
    );
    for (const repo of ['', 'http://example.com', 'ftp://x', 'https://user:word@example.com', 'https://']) {
      const error = await rejects(
        bench.api.call(method.updateDeployment, { repoId, charts: [{ repo }] }),
        Code.INVALID_ARGUMENT,
      );
      assert.deepEqual(error.fields, ['charts[0].repo'], repo);
    }
    const missing = `${group}/${'0'.repeat(16)}`;
    await rejects(bench.api.call(method.createDeployment, { parentId: missing, charts }), Code.NOT_FOUND);
  });

  test('settings of a registry are kept', async () => {
    const registryId = await bench.newGroup();
    const before = await bench.api.call(method.getRegistrySettings, { registryId });
    assert.deepEqual([before.registryId, before.uniqueTags, before.eolGracePeriod], [registryId, false, false]);
    const changed = await bench.api.call(method.updateRegistrySettings, { registryId, uniqueTags: true });
    assert.deepEqual(await bench.api.call(method.getRegistrySettings, { registryId }), changed);
    assert.equal(changed.uniqueTags, true);
    await rejects(
      bench.api.call(method.getRegistrySettings, { registryId: `${registryId}/${'0'.repeat(16)}` }),
      Code.NOT_FOUND,
    );
  });

  test('what this server does not do has an honest answer', async () => {
    const group = await bench.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'plain' });
    const { digest } = await withStore(bench.server, (store) => pushImage(store, repoId));
    assert.deepEqual((await bench.api.call(method.listBuildReports, {})).reports, []);
    assert.deepEqual((await bench.api.call(method.getBuildStatus, {})).failures, []);
    assert.deepEqual((await bench.api.call(method.listSyncStatuses, { registryId: group })).items, []);
    assert.equal((await bench.api.call(method.getSyncStatus, { repoId })).status, v1.SyncStatus_Status.UNKNOWN);
    const { chartImageBindings } = await bench.api.call(method.listChartsByImageRepo, { repoId });
    assert.deepEqual(chartImageBindings, []);
    await rejects(bench.api.call(method.getHelm, { repoId, digest }), Code.NOT_FOUND);
    await rejects(bench.api.call(method.getChart, { repoId, digest }), Code.NOT_FOUND);
    await rejects(bench.api.call(method.getPackageVersionMetadata, { package: 'go' }), Code.NOT_FOUND);
    const missing = `${group}/${'0'.repeat(16)}`;
    for (const about of [method.getSyncStatus, method.getUpdateStatus, method.getRepoTagsSummary] as const) {
      await rejects(bench.api.call(about, { repoId: missing }), Code.NOT_FOUND);
    }
  });
});
