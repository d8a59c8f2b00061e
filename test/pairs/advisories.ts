import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { SecurityAdvisoryService } from '../../src/contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { ArtifactsService, Ecosystem } from '../../src/contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { AdvisoriesService } from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { SecurityAdvisory } from '../../src/contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import { Artifacts } from '../../src/contract/gen/platform/libraries/v1/artifacts.libraries.platform_pb.js';
import { Advisories } from '../../src/contract/gen/platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { LibraryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/libraries_pb.js';
import { VulnerabilityImportsService } from '../../src/contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import type { ApiFixture } from '../support/api-fixture.ts';
import { type ReadPair, toPlainObject } from '../support/read-pairs.ts';
import { newScannedRepo } from '../support/scanned-repo.ts';

const time = (text: string) => timestampFromDate(new Date(text));
const TIME = time('2026-08-01T00:00:00Z');

let nameCount = 0;
const newName = (): string => `artifact-${++nameCount}`;

/** Advisories are created one by one through v1, or by an import. v2 cannot write them. */
const advisoryWriters = {
  async v1({ api, newGroup }: ApiFixture) {
    const artifactName = newName();
    const events = [{ type: { case: 'fixed' as const, value: { fixedVersion: '1' } }, timestamp: TIME }];
    const advisory = { artifactName, aliases: ['CVE-2026-1'], legacyAdvisoryID: newName(), events };
    const { id } = await api.call(Advisories.method.create, { parentId: await newGroup(), advisory });
    const event = { type: { case: 'truePositiveDetermination' as const, value: { note: 'confirmed' } } };
    await api.call(Advisories.method.createAdvisoryEvent, { parentId: id, advisoryEvent: event });
    return { query: id, expectedText: artifactName };
  },
  async 'an import'({ api, newGroup }: ApiFixture) {
    const [parent, artifactName] = [await newGroup(), newName()];
    const events = [{ type: { case: 'pendingUpstreamFix' as const, value: { note: 'soon' } }, createTime: TIME }];
    const advisories = [{ artifactName, aliases: ['CVE-2026-2'], events, deleteTime: TIME }];
    await api.call(AdvisoryImportsService.method.importAdvisories, { parent, advisories });
    const found = await api.call(AdvisoriesService.method.listAdvisories, { uidp: { childrenOf: parent } });
    return { query: found.advisories[0]?.uid ?? '', expectedText: artifactName };
  },
};

export const advisories: ReadPair = {
  resource: 'advisory',
  writers: advisoryWriters,
  async v1(api, id) {
    const { items } = await api.call(Advisories.method.list, { id });
    const { items: events } = await api.call(Advisories.method.listAdvisoryEvents, { parentId: id });
    return toPlainObject(
      items.map((advisory) => ({ ...advisory, events })),
      {
        ...{ id: 'uid', createdAt: 'createTime', updatedAt: 'updateTime', deletedAt: 'deleteTime' },
        ...{ legacyAdvisoryID: 'legacyAdvisoryId', timestamp: 'createTime', status: 'reviewState' },
      },
    );
  },
  async v2(api, uid) {
    const { severities: _, events, ...fields } = await api.call(AdvisoriesService.method.getAdvisory, { uid });
    return toPlainObject([{ ...fields, events: events.map(({ updateTime: _, ...event }) => event) }]);
  },
};

/** Removes the fields that v1 does not have. */
const withoutTimes = <M extends { uid?: unknown; createTime?: unknown; updateTime?: unknown }>(message: M) => {
  const { uid: _uid, createTime: _created, updateTime: _updated, ...fields } = message;
  return fields;
};

/** The id of a document is the name of its artifact. Each write uses a new name. */
export const documents: ReadPair = {
  resource: 'advisory document',
  writers: {
    async v1(fixture) {
      const { expectedText: artifactName } = await advisoryWriters.v1(fixture);
      return { query: artifactName, expectedText: 'CGA-' };
    },
  },
  v1: async (api, id) => toPlainObject((await api.call(SecurityAdvisory.method.listDocuments, { id })).items),
  v2: async (api, id) =>
    toPlainObject((await api.call(SecurityAdvisoryService.method.listDocuments, { id })).documents.map(withoutTimes)),
};

export const vulnerabilityMetadata: ReadPair = {
  resource: 'vulnerability metadata',
  writers: {
    async 'an import'({ api, newGroup }) {
      const [id, summary] = [`CVE-2026-${9000 + ++nameCount}`, newName()];
      const severities = [{ type: 2, score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }];
      const vulnerabilities = [{ id, summary, severities, references: [{ type: 1, url: 'https://example.com' }] }];
      await api.call(VulnerabilityImportsService.method.importVulnerabilities, {
        parent: await newGroup(),
        vulnerabilities,
      });
      return { query: id, expectedText: summary };
    },
  },
  v1: async (api, id) =>
    toPlainObject((await api.call(SecurityAdvisory.method.listVulnerabilityMetadata, { id })).items, {
      severity: 'severities',
    }),
  v2: async (api, id) =>
    toPlainObject(
      (await api.call(SecurityAdvisoryService.method.listVulnerabilityMetadata, { id })).vulnerabilityMetadata.map(
        ({ aliases: _, ...fields }) => withoutTimes(fields),
      ),
    ),
};

const artifactFieldNames = { id: 'uid', createdAt: 'createTime', updatedAt: 'updateTime' };

export const artifacts: ReadPair = {
  resource: 'library',
  writers: {
    async 'an import'({ api, newGroup }) {
      const name = newName();
      const versions = ['1.0', '1.1'].map((version) => ({
        ...{ name, version, description: 'a library' },
        files: [{ name: `${name}-${version}.whl`, sizeBytes: 100n, createTime: TIME }],
      }));
      await api.call(LibraryImportsService.method.importPythonLibraries, { parent: await newGroup(), versions });
      return { query: name, expectedText: name };
    },
  },
  async v1(api, query) {
    const { items } = await api.call(Artifacts.method.list, { query });
    const { items: versions } = await api.call(Artifacts.method.listVersions, { id: items[0]?.id ?? '' });
    const commonVersions = versions.map((version) => {
      const { sourceType: _, malwareScanned: _scanned, malwareMalicious: _malicious, ...fields } = version;
      return fields;
    });
    const { counts } = await api.call(Artifacts.method.getArtifactCount);
    return toPlainObject(
      [items, commonVersions, counts.map(({ totalArtifacts }) => BigInt(totalArtifacts))],
      artifactFieldNames,
    );
  },
  async v2(api, query) {
    const ecosystems = [Ecosystem.JAVA, Ecosystem.PYTHON];
    const { artifacts } = await api.call(ArtifactsService.method.listArtifacts, { ecosystems, query });
    const artifactId = artifacts[0]?.uid ?? '';
    const { artifactVersions } = await api.call(ArtifactsService.method.listArtifactVersions, { artifactId });
    const { counts } = await api.call(ArtifactsService.method.getArtifactCount, { ecosystems });
    return toPlainObject([artifacts, artifactVersions, counts.map(({ totalCount }) => totalCount)]);
  },
};

const period = { from: time('2026-07-02T00:00:00Z'), to: time('2026-07-04T00:00:00Z') };

export const resolvedReports: ReadPair = {
  resource: 'report of resolved vulnerabilities',
  writers: {
    async 'a scan'(fixture) {
      const repo = await newScannedRepo(fixture);
      const before = await repo.addImage('before', 'latest', '2026-07-01T00:00:00Z');
      const after = await repo.addImage('after', 'latest', '2026-07-03T00:00:00Z');
      await repo.importScan(before.digest, { findings: [{ id: 'CVE-2026-7001' }], time: '2026-07-01T01:00:00Z' });
      await repo.importScan(after.digest, { findings: [], time: '2026-07-03T01:00:00Z' });
      return { query: repo.uid, expectedText: 'CVE-2026-7001' };
    },
  },
  async v1(api, repo) {
    const request = { imageRefs: [{ repo, tags: ['latest'] }], ...period };
    return toPlainObject((await api.call(SecurityAdvisory.method.listResolvedVulnsReports, request)).items);
  },
  async v2(api, repo) {
    const request = { imageRefs: [{ repo, tags: ['latest'] }], startTime: period.from, endTime: period.to };
    const { resolvedVulnsReports } = await api.call(SecurityAdvisoryService.method.listResolvedVulnsReports, request);
    return toPlainObject(resolvedVulnsReports.map(withoutTimes));
  },
};
