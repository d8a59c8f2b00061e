import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import * as v1 from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { insertImage, withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { ociClient } from '../support/oci-client.ts';
import { rejects } from '../support/rejects.ts';

const { method } = v1.Registry;
const DAY = 24 * 3_600_000;

/** Runs `work`. `now` asserts that a time is the time of the call plus `offset`. */
async function rangeOf<T>(work: () => Promise<T>) {
  const before = Date.now();
  const result = await work();
  const after = Date.now();
  const now = (time: Timestamp | undefined, offset: number): void => {
    const called = timestampMs(time ?? assert.fail('there is no time')) - offset;
    assert.ok(called >= before && called <= after, `${before} ${called} ${after}`);
  };
  return { result, now };
}

onEveryDatabaseAndWire('the registry in v1', (fixture) => {
  const newRepo = async (parent: string, repo: { name: string; readme?: string }) =>
    fixture.api.call(method.createRepo, { parentId: parent, repo, preventExisting: true });

  test('a repo contains its README, which v2 serves separately', async () => {
    const group = await fixture.newGroup();
    const repo = await newRepo(group, { name: 'documented', readme: '# One' });
    assert.equal(repo.readme, '# One');
    const readmeOf = async () => (await fixture.api.call(ReposService.method.getRepoReadme, { uid: repo.id })).content;
    assert.equal(await readmeOf(), '# One');
    const { items } = await fixture.api.call(method.listRepos, { uidp: { childrenOf: group } });
    assert.deepEqual(items, [repo]);
    const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
    const changed = await owner.call(method.updateRepo, { ...repo, readme: '# Two' });
    assert.deepEqual([changed.readme, await readmeOf()], ['# Two', '# Two']);
    const types = (await eventsAbout(fixture.db, repo.id)).map(({ type, bodyType }) => [
      type.split('.').at(-2),
      bodyType,
    ]);
    assert.deepEqual(types, [
      ['created', 'chainguard.platform.registry.Repo'],
      ['updated', 'chainguard.platform.registry.Repo'],
    ]);
    assert.equal((await eventsAbout(fixture.db, repo.id)).at(-1)?.body?.readme, '# Two');
    const refused = await rejects(
      owner.call(method.updateRepo, { ...repo, readme: '<script>x</script>' }),
      Code.INVALID_ARGUMENT,
    );
    assert.deepEqual(refused.fields, ['readme']);
    await owner.call(method.updateRepo, { id: repo.id, name: repo.name });
    assert.equal(await readmeOf(), '', 'a PUT replaces all fields');
  });

  test('creating an existing repo returns it, unless preventExisting is set', async () => {
    const parentId = await fixture.newGroup();
    const repo = await newRepo(parentId, { name: 'twice', readme: 'kept' });
    const again = await fixture.api.call(method.createRepo, { parentId, repo: { name: 'twice' } });
    assert.deepEqual(again, repo);
    assert.equal((await eventsAbout(fixture.db, repo.id)).length, 1);
    await rejects(newRepo(parentId, { name: 'twice' }), Code.ALREADY_EXISTS);
  });

  test('validation errors name the fields of v1', async () => {
    const group = await fixture.newGroup();
    const bad = { name: 'UPPER', bundles: ['none'] };
    const error = await rejects(newRepo(group, bad), Code.INVALID_ARGUMENT);
    assert.deepEqual(error.fields, ['name', 'bundles[0]']);
    await rejects(fixture.api.call(method.updateRepo, { id: `${group}/${'0'.repeat(16)}`, name: 'x' }), Code.NOT_FOUND);
    assert.deepEqual((await fixture.api.call(method.listRepos, { id: `${group}/${'0'.repeat(16)}` })).items, []);
  });

  test('the repos that sync from a source are counted', async () => {
    const group = await fixture.newGroup();
    const source = await newRepo(group, { name: 'source' });
    for (const name of ['one', 'two']) {
      const repo = { name, syncConfig: { source: source.id } };
      await fixture.api.call(method.createRepo, { parentId: group, repo });
    }
    assert.equal((await fixture.api.call(method.getRepoCountBySource, { id: source.id })).count, 2n);
  });

  test('tags of all kinds are listed, summarized and updated, with a history', async () => {
    const group = await fixture.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'tagged' });
    const [first, second] = await withStore(fixture.server, async (store) => {
      const one = await insertImage(store, repoId, '1.9', { content: 'one', now: 1 * DAY });
      await insertImage(store, repoId, 'v1.10.0', { content: 'one', now: 2 * DAY });
      await insertImage(store, repoId, '1.9-20260101', { content: 'one', now: 3 * DAY });
      await insertImage(store, repoId, '1.9-r2', { content: 'one', now: 4 * DAY });
      const two = await insertImage(store, repoId, '1.9', { content: 'two', now: 5 * DAY });
      return [one.digest, two.digest];
    });
    const list = async (filter: object) =>
      (await fixture.api.call(method.listTags, { uidp: { childrenOf: repoId }, ...filter })).items;
    assert.deepEqual((await list({})).map(({ name }) => name).sort(), ['1.9', '1.9-20260101', '1.9-r2', 'v1.10.0']);
    const plain = await list({ excludeDates: true, excludeEpochs: true });
    assert.deepEqual(plain.map(({ name }) => name).sort(), ['1.9', 'v1.10.0']);
    assert.equal((await list({ digest: second })).length, 1);
    assert.equal((await list({ updatedSince: timestampFromMs(4 * DAY) })).length, 2);

    const summary = await fixture.api.call(method.getRepoTagsSummary, { repoId, excludeDates: true });
    assert.deepEqual([summary.tagCount, summary.latestTag?.name, summary.latestVersion], [3n, '1.9', 'v1.10.0']);
    assert.equal(summary.lastUpdated && timestampMs(summary.lastUpdated), 5 * DAY);
    assert.equal((await fixture.api.call(method.getUpdateStatus, { repoId })).recentlyUpdated, false);

    const tag = plain.find(({ name }) => name === '1.9') ?? assert.fail();
    const history = async (range: object = {}) =>
      (await fixture.api.call(method.listTagHistory, { parentId: tag.id, ...range })).items.map(({ digest }) => digest);
    assert.deepEqual(await history(), [second, first]);
    assert.deepEqual(await history({ end: timestampFromMs(4 * DAY) }), [first]);
    assert.deepEqual(await history({ start: timestampFromMs(4 * DAY) }), [second]);

    const changed = await fixture.api.call(method.updateTag, { ...tag, digest: first, bundles: ['fips'] });
    assert.deepEqual([changed.digest, changed.bundles, changed.name], [first, ['fips'], '1.9']);
    assert.deepEqual(await history(), [first, second, first]);
    assert.equal((await fixture.api.call(method.getUpdateStatus, { repoId })).recentlyUpdated, true);
    const event = (await eventsAbout(fixture.db, tag.id)).at(-1);
    assert.deepEqual(
      [event?.type, event?.scope, event?.bodyType],
      ['dev.chainguard.api.platform.registry.tag.updated.v1', fixture.org, 'chainguard.platform.registry.Tag'],
    );
    for (const [field, bad] of [
      ['name', { name: 'other' }],
      ['digest', { digest: 'sha256:short' }],
      ['digest', { digest: `sha256:${'0'.repeat(64)}` }],
      ['bundles[0]', { bundles: ['none'] }],
    ] as [string, { name?: string; digest?: string; bundles?: string[] }][]) {
      const error = await rejects(fixture.api.call(method.updateTag, { ...tag, ...bad }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, [field]);
    }
    await rejects(fixture.api.call(method.updateTag, { ...tag, id: `${repoId}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
  });

  test('a tag without a digest waits for its image, and an update without a digest keeps it', async () => {
    const name = `waiting-${fixture.wire.toLowerCase()}`;
    const { id: repoId } = await newRepo(fixture.org, { name });
    const oci = ociClient(fixture.server.url, `Bearer ${fixture.server.token}`);
    const pull = async () => (await oci.send('GET', `/v2/my-org/${name}/manifests/next`)).status;
    const tagNames = async () => JSON.parse(String((await oci.send('GET', `/v2/my-org/${name}/tags/list`)).body)).tags;
    try {
      const tag = await fixture.api.call(method.createTag, { repoId, tag: { name: 'next', bundles: ['fips'] } });
      assert.deepEqual([tag.name, tag.digest, tag.bundles], ['next', '', ['fips']]);
      const list = async () => (await fixture.api.call(method.listTags, { uidp: { childrenOf: repoId } })).items;
      assert.deepEqual(await list(), [tag]);
      for (const id of ['v2', 'v2beta1'].map(
        (version) => `chainguard.platform.registry.${version}.TagsService/GetTag`,
      )) {
        const read = await fixture.api.call(
          TagsService.method.getTag,
          { uid: tag.id },
          { token: fixture.server.token, id },
        );
        assert.deepEqual([read.name, read.digest, read.bundles], ['next', '', ['fips']]);
      }
      const [created] = await eventsAbout(fixture.db, tag.id);
      assert.deepEqual(
        [created?.type, created?.scope, created?.bodyType, created?.body?.name],
        [
          'dev.chainguard.api.platform.registry.tag.created.v1',
          fixture.org,
          'chainguard.platform.registry.Tag',
          'next',
        ],
      );
      assert.deepEqual([await pull(), await tagNames()], [404, []]);
      await rejects(fixture.api.call(method.createTag, { repoId, tag: { name: 'next' } }), Code.ALREADY_EXISTS);

      const waiting = await fixture.api.call(method.updateTag, { id: tag.id, deprecated: true });
      assert.deepEqual([waiting.digest, waiting.deprecated, waiting.bundles], ['', true, []]);
      const { digest } = await withStore(fixture.server, (store) => insertImage(store, repoId, 'next'));
      assert.deepEqual([await pull(), await tagNames()], [200, ['next']]);
      const kept = await fixture.api.call(method.updateTag, { id: tag.id, bundles: ['base'] });
      assert.deepEqual([kept.digest, kept.deprecated, kept.bundles], [digest, false, ['base']]);
      assert.equal(await pull(), 200);
      const { items: history } = await fixture.api.call(method.listTagHistory, { parentId: tag.id });
      assert.deepEqual(
        history.map((move) => move.digest),
        [digest],
      );

      const { id: unused } = await fixture.api.call(method.createTag, { repoId, tag: { name: 'unused' } });
      await fixture.api.call(method.deleteTag, { id: unused });
      assert.deepEqual(
        (await list()).map((each) => each.name),
        ['next'],
      );
      for (const [field, bad] of [
        ['name', {}],
        ['name', { name: 'a b' }],
        ['bundles[0]', { name: 'ok', bundles: ['none'] }],
      ] as [string, { name?: string; bundles?: string[] }][]) {
        const refused = fixture.api.call(method.createTag, { repoId, tag: bad });
        assert.deepEqual((await rejects(refused, Code.INVALID_ARGUMENT)).fields, [field]);
      }
      const missing = { repoId: `${fixture.org}/${'0'.repeat(16)}`, tag: { name: 'lost' } };
      await rejects(fixture.api.call(method.createTag, missing), Code.NOT_FOUND);
      const v2 = fixture.api.call(TagsService.method.createTag, { parent: repoId, tag: { name: 'strict' } });
      assert.deepEqual((await rejects(v2, Code.INVALID_ARGUMENT)).fields, ['digest']);
    } finally {
      oci.close();
    }
  });

  test('the settings of a synchronization are kept, and v2 shows them', async () => {
    const parentId = await fixture.newGroup();
    const { getRepo, createRepo, updateRepo } = ReposService.method;
    const inV2 = async (uid: string, version = 'v2') => {
      const id = `chainguard.platform.registry.${version}.ReposService/GetRepo`;
      const { syncConfig } = await fixture.api.call(getRepo, { uid }, { token: fixture.server.token, id });
      return syncConfig ?? assert.fail();
    };
    const source = 'registry.example.com/elsewhere/app';
    const expiration = timestampFromMs(Date.UTC(2031, 0, 1, 12));
    const settings = {
      uniqueTags: true,
      gracePeriod: true,
      syncApks: true,
      apkoOverlay: 'contents:\n  packages: []\n',
    };
    const syncConfig = { source, expiration, google: 'g', amazon: 'a', azure: 'z', ...settings };
    const made = await fixture.api.call(method.createRepo, { parentId, repo: { name: 'synced', syncConfig } });
    const listed = async (id: string) => (await fixture.api.call(method.listRepos, { id })).items[0]?.syncConfig;
    const { $typeName: _, ...sent } = made.syncConfig ?? assert.fail();
    assert.deepEqual(
      { ...sent, expiration: timestampMs(sent.expiration ?? assert.fail()) },
      {
        ...syncConfig,
        expiration: timestampMs(expiration),
      },
    );
    assert.deepEqual(await listed(made.id), made.syncConfig);
    for (const version of ['v2', 'v2beta1']) {
      const read = await inV2(made.id, version);
      assert.deepEqual(
        [read.source, read.uniqueTags, read.gracePeriod, read.syncApks, read.apkoOverlay, read.expirationTime],
        [source, true, true, true, settings.apkoOverlay, expiration],
      );
    }
    const [event] = await eventsAbout(fixture.db, made.id);
    assert.match(JSON.stringify(event?.body), /2031-01-01T12:00:00/);

    // Updates through v2 change none of these, whatever their mask is.
    const outputs = await inV2(made.id);
    for (const paths of [
      ['description'],
      ['sync_config.google'],
      ['sync_config'],
      ['sync_config.expiration_time'],
      ['*'],
    ]) {
      const changed = { source, google: 'g', amazon: 'a', azure: 'z', uniqueTags: false, apkoOverlay: 'other' };
      const repo = { uid: made.id, name: 'synced', description: paths.join(), syncConfig: changed };
      await fixture.api.call(updateRepo, { repo, updateMask: { paths } });
      assert.deepEqual(await inV2(made.id), outputs, paths.join());
    }
    assert.deepEqual(await listed(made.id), made.syncConfig);

    // A PUT through v1 replaces them.
    const { now } = await rangeOf(() =>
      fixture.api.call(method.updateRepo, { id: made.id, name: 'synced', syncConfig: { source } }),
    );
    const replaced = await listed(made.id);
    assert.deepEqual(
      [replaced?.uniqueTags, replaced?.gracePeriod, replaced?.syncApks, replaced?.apkoOverlay, replaced?.google],
      [false, false, false, '', ''],
    );
    now(replaced?.expiration, 14 * DAY);
    await fixture.api.call(method.updateRepo, { id: made.id, name: 'synced' });
    assert.equal(await listed(made.id), undefined);
    const again = await rangeOf(() =>
      fixture.api.call(updateRepo, {
        repo: { uid: made.id, syncConfig: { source } },
        updateMask: { paths: ['sync_config'] },
      }),
    );
    again.now((await inV2(made.id)).expirationTime, 14 * DAY);

    // With only a source, the expiration is 14 days from now.
    const short = await rangeOf(() =>
      fixture.api.call(method.createRepo, { parentId, repo: { name: 'short', syncConfig: { source } } }),
    );
    short.now(short.result.syncConfig?.expiration, 14 * DAY);
    assert.deepEqual((await inV2(short.result.id, 'v2beta1')).expirationTime, short.result.syncConfig?.expiration);
    const viaV2 = await rangeOf(() =>
      fixture.api.call(createRepo, {
        parent: parentId,
        repo: { name: 'via-v2', syncConfig: { source, expirationTime: expiration, uniqueTags: true } },
      }),
    );
    viaV2.now(viaV2.result.syncConfig?.expirationTime, 14 * DAY);
    assert.deepEqual([viaV2.result.syncConfig?.uniqueTags, viaV2.result.syncConfig?.syncApks], [false, undefined]);

    const long = { source, apkoOverlay: 'x'.repeat(70_000) };
    const refused = fixture.api.call(method.createRepo, { parentId, repo: { name: 'long', syncConfig: long } });
    assert.deepEqual((await rejects(refused, Code.INVALID_ARGUMENT)).fields, ['sync_config.apko_overlay']);
    if (fixture.wire === 'gRPC') {
      const never = { source, expiration: { seconds: 253_402_300_800n, nanos: 0 } };
      const late = fixture.api.call(method.createRepo, { parentId, repo: { name: 'late', syncConfig: never } });
      assert.deepEqual((await rejects(late, Code.INVALID_ARGUMENT)).fields, ['sync_config.expiration']);
    }
  });

  test('a repo can have one deployment', async () => {
    const group = await fixture.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'deployed' });
    await rejects(fixture.api.call(method.getDeployment, { repoId }), Code.NOT_FOUND);
    const charts = [{ repo: 'https://charts.example.com', chart: 'app' }, { repo: 'oci://example.com/charts' }];
    await rejects(fixture.api.call(method.updateDeployment, { repoId, charts }), Code.NOT_FOUND);
    const made = await fixture.api.call(method.createDeployment, { parentId: repoId, charts });
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
    assert.deepEqual(await fixture.api.call(method.getDeployment, { repoId }), made);
    await rejects(fixture.api.call(method.createDeployment, { parentId: repoId, charts }), Code.ALREADY_EXISTS);
    const changed = await fixture.api.call(method.updateDeployment, {
      repoId,
      charts: [{ repo: 'http://localhost:1' }],
    });
    assert.deepEqual(await fixture.api.call(method.getDeployment, { repoId }), changed);
    await fixture.api.call(method.updateRepo, { id: repoId, name: 'deployed', description: 'still' });
    assert.deepEqual(
      await fixture.api.call(method.getDeployment, { repoId }),
      changed,
      'an update of the repo keeps it',
    );
    for (const repo of ['', 'http://example.com', 'ftp://x', 'https://user:word@example.com', 'https://']) {
      const error = await rejects(
        fixture.api.call(method.updateDeployment, { repoId, charts: [{ repo }] }),
        Code.INVALID_ARGUMENT,
      );
      assert.deepEqual(error.fields, ['charts[0].repo'], repo);
    }
    const missing = `${group}/${'0'.repeat(16)}`;
    await rejects(fixture.api.call(method.createDeployment, { parentId: missing, charts }), Code.NOT_FOUND);
  });

  test('the settings of a registry can be updated', async () => {
    const registryId = await fixture.newGroup();
    const before = await fixture.api.call(method.getRegistrySettings, { registryId });
    assert.deepEqual([before.registryId, before.uniqueTags, before.eolGracePeriod], [registryId, false, false]);
    const changed = await fixture.api.call(method.updateRegistrySettings, { registryId, uniqueTags: true });
    assert.deepEqual(await fixture.api.call(method.getRegistrySettings, { registryId }), changed);
    assert.equal(changed.uniqueTags, true);
    await rejects(
      fixture.api.call(method.getRegistrySettings, { registryId: `${registryId}/${'0'.repeat(16)}` }),
      Code.NOT_FOUND,
    );
  });

  test('features that this server lacks return empty results or NOT_FOUND', async () => {
    const group = await fixture.newGroup();
    const { id: repoId } = await newRepo(group, { name: 'plain' });
    const { digest } = await withStore(fixture.server, (store) => insertImage(store, repoId));
    assert.deepEqual((await fixture.api.call(method.listBuildReports, {})).reports, []);
    assert.deepEqual((await fixture.api.call(method.getBuildStatus, {})).failures, []);
    assert.deepEqual((await fixture.api.call(method.listSyncStatuses, { registryId: group })).items, []);
    assert.equal((await fixture.api.call(method.getSyncStatus, { repoId })).status, v1.SyncStatus_Status.UNKNOWN);
    const { chartImageBindings } = await fixture.api.call(method.listChartsByImageRepo, { repoId });
    assert.deepEqual(chartImageBindings, []);
    await rejects(fixture.api.call(method.getHelm, { repoId, digest }), Code.NOT_FOUND);
    await rejects(fixture.api.call(method.getChart, { repoId, digest }), Code.NOT_FOUND);
    await rejects(fixture.api.call(method.getPackageVersionMetadata, { package: 'go' }), Code.NOT_FOUND);
    const missing = `${group}/${'0'.repeat(16)}`;
    for (const read of [method.getSyncStatus, method.getUpdateStatus, method.getRepoTagsSummary] as const) {
      await rejects(fixture.api.call(read, { repoId: missing }), Code.NOT_FOUND);
    }
  });
});
