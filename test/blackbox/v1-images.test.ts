import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import * as v1 from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { ComponentGraph_Edge_Type } from '../../src/contract/gen/platform/tenant/v1/sbom.platform_pb.js';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import {
  buildIndex,
  buildManifest,
  CONFIG,
  descriptorFor,
  IMAGE,
  LAYER,
  type Manifest,
  ociClient,
} from '../support/oci-client.ts';
import { rejects } from '../support/rejects.ts';

const { method } = v1.Registry;

const runtimeConfig = {
  User: '65532',
  ExposedPorts: { '8080/tcp': {} },
  Env: ['PATH=/bin', 7],
  Entrypoint: ['/app'],
  Cmd: ['serve'],
  Volumes: { '/data': {} },
  WorkingDir: '/home',
  Labels: { maker: 'us', odd: 7 },
  StopSignal: 'SIGTERM',
};

const spdx = {
  spdxVersion: 'SPDX-2.3',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: 'app',
  creationInfo: { created: '2026-08-01T00:00:00Z', creators: ['Tool: apko 1', 'Organization: us'] },
  packages: [
    {
      SPDXID: 'SPDXRef-1',
      name: 'curl',
      versionInfo: '8.1-r0',
      licenseDeclared: 'MIT',
      externalRefs: [{ referenceType: 'purl', referenceLocator: 'pkg:apk/wolfi/curl@8.1-r0' }],
    },
    { SPDXID: 'SPDXRef-2', name: 'bare', licenseDeclared: 'NOASSERTION' },
  ],
  relationships: [
    { spdxElementId: 'SPDXRef-2', relationshipType: 'DEPENDENCY_OF', relatedSpdxElement: 'SPDXRef-1' },
    { spdxElementId: 'SPDXRef-2', relationshipType: 'UNKNOWN', relatedSpdxElement: 'SPDXRef-1' },
  ],
};

const cyclonedx = {
  bomFormat: 'CycloneDX',
  metadata: { timestamp: '2026-08-02T00:00:00Z', tools: { components: [{ name: 'syft', version: '1' }] } },
  components: [{ 'bom-ref': 'a', type: 'library', name: 'left-pad', version: '1.3.0', purl: 'pkg:npm/left-pad@1.3.0' }],
  dependencies: [{ ref: 'a', dependsOn: ['b'] }],
};

let count = 0;

onEveryDatabaseAndWire('images in v1', (fixture) => {
  const clients = new Set<ReturnType<typeof ociClient>>();
  after(() => clients.forEach((client) => void client.close()));

  /** Pushes an image for two architectures to a new repo, and returns functions that push more and attach to it. */
  async function pushIndex({ server, api, org }: ApiFixture) {
    const client = ociClient(server.url, `Bearer ${server.token}`);
    clients.add(client);
    const leaf = `images-${++count}`;
    const name = `my-org/${leaf}`;
    const pushAll = async (manifest: Manifest, ...blobs: Buffer[]) => {
      for (const blob of blobs) await client.pushBlob(name, blob);
      return client.pushManifest(name, manifest.digest, manifest);
    };
    const imageFor = async (architecture: string) => {
      const config = Buffer.from(
        JSON.stringify({ os: 'linux', architecture, config: { ...runtimeConfig, User: architecture } }),
      );
      const layer = Buffer.from(architecture);
      const image = buildManifest({
        schemaVersion: 2,
        mediaType: IMAGE,
        config: descriptorFor(CONFIG, config),
        layers: [descriptorFor(LAYER, layer)],
      } as { mediaType: string });
      await pushAll(image, config, layer);
      return image;
    };
    const [amd64, arm64] = [await imageFor('amd64'), await imageFor('arm64')];
    const index = buildIndex({ amd64, arm64 });
    await client.pushManifest(name, 'v1', index);
    const attach = async (to: Manifest, type: string, content: string) => {
      const [empty, blob] = [Buffer.from('{}'), Buffer.from(content)];
      const referrer = buildManifest({
        schemaVersion: 2,
        mediaType: IMAGE,
        artifactType: type,
        config: descriptorFor('application/vnd.oci.empty.v1+json', empty),
        layers: [descriptorFor(type, blob)],
        subject: descriptorFor(to.mediaType, to.bytes),
      } as { mediaType: string });
      await pushAll(referrer, empty, blob);
    };
    const [repo] = (await api.call(method.listRepos, { uidp: { childrenOf: org }, name: leaf })).items;
    return { repoId: repo?.id ?? assert.fail(), pushAll, index, amd64, arm64, attach };
  }

  test('architectures, sizes and configuration of an image are returned', async () => {
    const { api } = fixture;
    const { repoId, index, arm64 } = await pushIndex(fixture);
    const { digest } = index;
    assert.deepEqual((await api.call(method.getArchs, { repoId, digest })).archs, ['amd64', 'arm64']);
    const { size, arch } = await api.call(method.getSize, { repoId, digest, arch: 'arm64' });
    assert.ok(size > 0n);
    assert.equal(arch, 'arm64');
    const config = await api.call(method.getImageConfig, { repoId, digest });
    assert.deepEqual(
      [config.user, config.env, config.entrypoint, config.cmd],
      ['amd64', ['PATH=/bin'], ['/app'], ['serve']],
    );
    assert.deepEqual([Object.keys(config.exposedPorts), Object.keys(config.volumes)], [['8080/tcp'], ['/data']]);
    assert.deepEqual([config.workingDir, config.labels, config.stopSignal], ['/home', { maker: 'us' }, 'SIGTERM']);
    assert.equal((await api.call(method.getImageConfig, { repoId, digest, arch: 'arm64' })).user, 'arm64');
    assert.equal((await api.call(method.getImageConfig, { repoId, digest: arm64.digest })).user, 'arm64');
    await rejects(api.call(method.getImageConfig, { repoId, digest, arch: 'vax' }), Code.NOT_FOUND);
    await rejects(api.call(method.getImageConfig, { repoId, digest: 'sha256:x' }), Code.INVALID_ARGUMENT);
    // An index and its two images.
    assert.equal((await api.call(method.getManifestDigestCount, { parentId: repoId })).count, 3n);
    assert.ok((await api.call(method.getManifestDigestCount, { parentId: fixture.org })).count >= 3n);
  });

  test('SBOMs are read from attached artifacts', async () => {
    const { api } = fixture;
    const { repoId, index, amd64, arm64, attach } = await pushIndex(fixture);
    await rejects(api.call(method.getRawSbom, { repoId, digest: index.digest }), Code.NOT_FOUND);
    await attach(amd64, 'application/vnd.dev.cosign.simplesigning.v1+json', '{}');
    await attach(amd64, 'application/spdx+json', JSON.stringify(spdx));
    await attach(arm64, 'application/vnd.cyclonedx+json', JSON.stringify(cyclonedx));

    const raw = await api.call(method.getRawSbom, { repoId, digest: index.digest });
    assert.deepEqual(JSON.parse(raw.rawSbom), spdx);
    const sbom = await api.call(method.getSbom, { repoId, digest: index.digest });
    assert.deepEqual(
      [sbom.format, sbom.name, sbom.tool, sbom.authors, sbom.digest],
      ['spdx', 'app', 'apko 1', 'us', amd64.digest],
    );
    assert.equal(sbom.generatedAt && timestampMs(sbom.generatedAt), Date.parse('2026-08-01'));
    assert.deepEqual(JSON.parse(Buffer.from(sbom.rawSbom).toString()), spdx);
    const nodes = sbom.graph?.nodes.map(({ typedNode }) => typedNode.value?.name);
    assert.deepEqual(nodes, ['curl', 'bare']);
    assert.deepEqual(
      sbom.graph?.edges.map(({ subjectId, type, predicateId }) => [subjectId, type, predicateId]),
      [['SPDXRef-1', ComponentGraph_Edge_Type.DEPENDS_ON, 'SPDXRef-2']],
    );
    const other = await api.call(method.getSbom, { repoId, digest: index.digest, arch: 'arm64' });
    assert.deepEqual([other.format, other.tool, other.digest], ['cyclonedx', 'syft 1', arm64.digest]);
  });

  test('the packages of images are listed from their SBOMs', async () => {
    const { repoId, index, amd64, arm64, attach } = await pushIndex(fixture);
    await attach(amd64, 'application/spdx+json', JSON.stringify(spdx));
    await attach(arm64, 'application/spdx+json', '{"spdxVersion":');
    const items = [
      { filter: { case: 'imageDigest' as const, value: amd64.digest } },
      { filter: { case: 'indexFilter' as const, value: { digest: index.digest, arch: 'arm64' } } },
      { filter: { case: 'imageDigest' as const, value: `sha256:${'0'.repeat(64)}` } },
    ];
    const found = await fixture.api.call(method.listManifestMetadata, { repoId, items });
    assert.deepEqual(
      found.items.map(({ digest, pkgMetadata }) => [digest, pkgMetadata.map(({ purl, license }) => [purl, license])]),
      [
        [amd64.digest, [['pkg:apk/wolfi/curl@8.1-r0', 'MIT']]],
        [index.digest, []],
      ],
    );
  });

  test('the metadata of a Helm chart is returned', async () => {
    const { repoId, pushAll } = await pushIndex(fixture);
    const chart = { name: 'app', version: '1.2.3', appVersion: '9', dependencies: [{ name: 'db', version: '~1' }] };
    const [config, layer] = [Buffer.from(JSON.stringify(chart)), Buffer.from('a chart')];
    const manifest = buildManifest({
      schemaVersion: 2,
      mediaType: IMAGE,
      config: descriptorFor('application/vnd.cncf.helm.config.v1+json', config),
      layers: [descriptorFor('application/vnd.cncf.helm.chart.content.v1.tar+gzip', layer)],
    } as { mediaType: string });
    await pushAll(manifest, config, layer);
    const found = await fixture.api.call(method.getChart, { repoId, digest: manifest.digest });
    assert.deepEqual([found.name, found.version, found.appVersion], ['app', '1.2.3', '9']);
    assert.deepEqual(
      found.dependencies.map(({ name, version }) => [name, version]),
      [['db', '~1']],
    );
    assert.deepEqual(JSON.parse(found.raw), chart);
    await rejects(fixture.api.call(method.getImageConfig, { repoId, digest: manifest.digest }), Code.NOT_FOUND);
  });
});
