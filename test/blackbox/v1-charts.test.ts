import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Apko } from '../../src/contract/gen/platform/registry/v1/apko.platform_pb.js';
import { ChartCatalog, Charts } from '../../src/contract/gen/platform/registry/v1/charts.platform_pb.js';
import { Policies } from '../../src/contract/gen/platform/registry/v1/policy.platform_pb.js';
import { ChartImageRequirement, Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { buildManifest, descriptorFor, IMAGE, ociClient } from '../support/oci-client.ts';
import { rejects } from '../support/rejects.ts';

const { addChart, findChart } = Charts.method;
const { createRepo, getRepo, listRepos } = ReposService.method;

let count = 0;

onEveryDatabaseAndWire('charts', (fixture) => {
  const clients: ReturnType<typeof ociClient>[] = [];
  after(() => clients.forEach((client) => void client.close()));

  const newGroup = async (parent: string, name: string) =>
    (await fixture.api.call(GroupsService.method.createGroup, { parent, group: { name } })).uid;

  /** Pushes a chart that names images of this registry and of another one. The first image exists. */
  async function pushChart(catalog = 'charts', tag = '1.0.0') {
    const id = ++count;
    const vendor = await newGroup(fixture.org, `vendor-${id}`);
    const charts = await newGroup(vendor, catalog);
    const name = `app-${id}`;
    const { uid: image } = await fixture.api.call(createRepo, { parent: vendor, repo: { name } });
    const images = [
      { name: 'app', image: `registry.example.com/my-org/vendor-${id}/${name}:1.0` },
      {
        name: 'metrics',
        image: `docker.io/library/metrics-${id}@sha256:${'0'.repeat(64)}`,
        condition: 'metrics.enabled',
      },
      { name: 'unusable', image: 'Not A Reference' },
    ];
    const yaml = images.map(
      (each) =>
        `- ${Object.entries(each)
          .map(([key, value]) => `${key}: "${value}"`)
          .join('\n  ')}`,
    );
    const chart = { name, version: '1.0.0', annotations: { 'artifacthub.io/images': yaml.join('\n') } };
    const [config, layer] = [Buffer.from(JSON.stringify(chart)), Buffer.from('a chart')];
    const manifest = buildManifest({
      schemaVersion: 2,
      mediaType: IMAGE,
      config: descriptorFor('application/vnd.cncf.helm.config.v1+json', config),
      layers: [descriptorFor('application/vnd.cncf.helm.chart.content.v1.tar+gzip', layer)],
    } as { mediaType: string });
    const client = ociClient(fixture.server.url, `Bearer ${fixture.server.token}`);
    clients.push(client);
    const path = `my-org/vendor-${id}/${catalog}/${name}`;
    for (const blob of [config, layer]) await client.pushBlob(path, blob);
    await client.pushManifest(path, tag, manifest);
    const { repos } = await fixture.api.call(listRepos, { uidp: { childrenOf: charts } });
    return { name, metrics: `metrics-${id}`, image, source: repos[0]?.uid ?? assert.fail(), digest: manifest.digest };
  }

  test('adding a chart creates a repo for it and for each of its images, once', async () => {
    const { name, metrics, image, source } = await pushChart();
    const parentId = await fixture.newGroup();
    const request = { parentId, sourceRepoId: source };
    const planned = await fixture.api.call(addChart, { ...request, dryRun: true });
    const expected = [`charts/${name}`, name, metrics];
    assert.deepEqual(
      planned.repos.map((repo) => [repo.name, repo.created, repo.id]),
      expected.map((each) => [each, true, '']),
    );
    assert.deepEqual((await fixture.api.call(listRepos, { uidp: { descendantsOf: parentId } })).repos, []);

    const { repos } = await fixture.api.call(addChart, { ...request, tag: '1.0.0' });
    assert.deepEqual(
      repos.map((repo) => [repo.name, repo.created]),
      expected.map((each) => [each, true]),
    );
    const sources = await Promise.all(
      repos.map(async ({ id }) => (await fixture.api.call(getRepo, { uid: id })).syncConfig?.source),
    );
    assert.deepEqual(sources, [source, image, undefined]);
    const again = await fixture.api.call(addChart, { ...request, sourceRepoId: repos[0]?.id ?? '' });
    assert.deepEqual(
      again.repos.map((repo) => [repo.id, repo.created]),
      repos.map(({ id }) => [id, false]),
    );
    const events = await eventsAbout(fixture.db, repos[0]?.id ?? '');
    assert.deepEqual(
      events.map(({ type, scope, bodyType }) => [type, scope, bodyType]),
      [
        [
          'dev.chainguard.api.platform.registry.chart.added.v1',
          parentId,
          'chainguard.platform.registry.AddChartResponse',
        ],
      ],
    );
  });

  test('a chart must exist, be readable and be a chart', async () => {
    const { source, image, name } = await pushChart();
    const parentId = await fixture.newGroup();
    const add = (request: object, client = fixture.api) =>
      client.call(addChart, { parentId, sourceRepoId: source, ...request });
    await rejects(add({ tag: '9.9.9' }), Code.NOT_FOUND);
    await rejects(add({ parentId: `${parentId}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
    for (const sourceRepoId of ['', 'x', `${parentId}/${'0'.repeat(16)}`]) {
      assert.deepEqual((await rejects(add({ sourceRepoId }), Code.INVALID_ARGUMENT)).fields, ['source_repo_id']);
    }
    const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', parentId)).token());
    assert.deepEqual((await rejects(add({}, owner), Code.INVALID_ARGUMENT)).fields, ['source_repo_id']);
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parentId)).token());
    await rejects(add({}, viewer), Code.PERMISSION_DENIED);
    await rejects(owner.call(findChart, { name }), Code.NOT_FOUND);
    // A repo without content may become one of a chart.
    assert.equal((await add({ sourceRepoId: image })).repos.length, 1);
  });

  test('charts are found by name and catalog, before their copies', async () => {
    const { name, source } = await pushChart('iamguarded-charts', 'latest');
    await fixture.api.call(addChart, { parentId: await fixture.newGroup(), sourceRepoId: source });
    for (const catalog of [ChartCatalog.UNSPECIFIED, ChartCatalog.IAMGUARDED]) {
      const found = await fixture.api.call(findChart, { catalog, name });
      assert.deepEqual([found.sourceRepoId, found.name], [source, name]);
    }
    await rejects(fixture.api.call(findChart, { catalog: ChartCatalog.COMMUNITY, name }), Code.NOT_FOUND);
    assert.deepEqual((await rejects(fixture.api.call(findChart, {}), Code.INVALID_ARGUMENT)).fields, ['name']);
  });

  test('GetChart lists the images that the annotations of a chart name', async () => {
    const { source, digest } = await pushChart();
    const { images } = await fixture.api.call(Registry.method.getChart, { repoId: source, digest });
    assert.deepEqual(
      images.map(({ name, requirement }) => [name, requirement]),
      [
        ['app', ChartImageRequirement.REQUIREMENT_REQUIRED],
        ['metrics', ChartImageRequirement.REQUIREMENT_OPTIONAL],
        ['unusable', ChartImageRequirement.REQUIREMENT_REQUIRED],
      ],
    );
  });

  test('no policy decides about an image', async () => {
    const { source: repoId, digest } = await pushChart();
    const check = (request: object) => fixture.api.call(Policies.method.checkPolicies, { repoId, digest, ...request });
    assert.deepEqual((await check({})).results, []);
    await rejects(check({ digest: `sha256:${'0'.repeat(64)}` }), Code.NOT_FOUND);
    await rejects(check({ repoId: `${fixture.org}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
    assert.deepEqual((await rejects(check({ digest: 'no' }), Code.INVALID_ARGUMENT)).fields, ['digest']);
  });

  test('building an image is refused with the reason, after the request was checked', async () => {
    const { image: repoUidp } = await pushChart();
    const config = { contents: { packages: ['curl'] } };
    for (const method of [Apko.method.resolveConfig, Apko.method.buildImage] as const) {
      const call = (request: object) => fixture.api.call(method as typeof Apko.method.buildImage, request);
      const refused = await rejects(call({ repoUidp, config }), Code.FAILED_PRECONDITION);
      assert.match(refused.message, /does not build images; build the image with apko/);
      assert.ok(refused.detail('PreconditionFailure'));
      assert.deepEqual((await rejects(call({ repoUidp }), Code.INVALID_ARGUMENT)).fields, ['config']);
      await rejects(call({ repoUidp: `${fixture.org}/${'0'.repeat(16)}`, config }), Code.NOT_FOUND);
    }
  });
});
