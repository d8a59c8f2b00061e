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
import type { Bench } from '../support/every-database-and-wire.ts';
import { plain, type Reading } from '../support/read-pairs.ts';
import { newRepo } from '../support/scanned-repo.ts';

const time = (text: string) => timestampFromDate(new Date(text));
const TIME = time('2026-08-01T00:00:00Z');

let count = 0;
const newName = (): string => `catalogued-${++count}`;

/** v1 writes advisories one by one, v2 not at all, and imports many. */
const writingAdvisories = {
  async v1({ api, newGroup }: Bench) {
    const artifactName = newName();
    const events = [{ type: { case: 'fixed' as const, value: { fixedVersion: '1' } }, timestamp: TIME }];
    const advisory = { artifactName, aliases: ['CVE-2026-1'], legacyAdvisoryID: newName(), events };
    const { id } = await api.call(Advisories.method.create, { parentId: await newGroup(), advisory });
    const event = { type: { case: 'truePositiveDetermination' as const, value: { note: 'so it is' } } };
    await api.call(Advisories.method.createAdvisoryEvent, { parentId: id, advisoryEvent: event });
    return { asked: id, shows: artifactName };
  },
  async 'an import'({ api, newGroup }: Bench) {
    const [parent, artifactName] = [await newGroup(), newName()];
    const events = [{ type: { case: 'pendingUpstreamFix' as const, value: { note: 'soon' } }, createTime: TIME }];
    const advisories = [{ artifactName, aliases: ['CVE-2026-2'], events, deleteTime: TIME }];
    await api.call(AdvisoryImportsService.method.importAdvisories, { parent, advisories });
    const found = await api.call(AdvisoriesService.method.listAdvisories, { uidp: { childrenOf: parent } });
    return { asked: found.advisories[0]?.uid ?? '', shows: artifactName };
  },
};

export const advisories: Reading = {
  resource: 'advisory',
  writes: writingAdvisories,
  async v1(api, id) {
    const { items } = await api.call(Advisories.method.list, { id });
    const { items: events } = await api.call(Advisories.method.listAdvisoryEvents, { parentId: id });
    return plain(
      items.map((one) => ({ ...one, events })),
      {
        ...{ id: 'uid', createdAt: 'createTime', updatedAt: 'updateTime', deletedAt: 'deleteTime' },
        ...{ legacyAdvisoryID: 'legacyAdvisoryId', timestamp: 'createTime', status: 'reviewState' },
      },
    );
  },
  async v2(api, uid) {
    const { severities: _, events, ...told } = await api.call(AdvisoriesService.method.getAdvisory, { uid });
    return plain([{ ...told, events: events.map(({ updateTime: _, ...event }) => event) }]);
  },
};

/** A document goes by the name of its artifact, which no two writes share. */
export const documents: Reading = {
  resource: 'advisory document',
  writes: {
    async v1(bench) {
      const { shows } = await writingAdvisories.v1(bench);
      return { asked: shows, shows: 'CGA-' };
    },
  },
  v1: async (api, id) => plain((await api.call(SecurityAdvisory.method.listDocuments, { id })).items),
  v2: async (api, id) => plain((await api.call(SecurityAdvisoryService.method.listDocuments, { id })).documents),
};

export const vulnerabilityMetadata: Reading = {
  resource: 'vulnerability metadata',
  writes: {
    async 'an import'({ api, newGroup }) {
      const [id, summary] = [`CVE-2026-${9000 + ++count}`, newName()];
      const severities = [{ type: 2, score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }];
      const vulnerabilities = [{ id, summary, severities, references: [{ type: 1, url: 'https://example.com' }] }];
      await api.call(VulnerabilityImportsService.method.importVulnerabilities, {
        parent: await newGroup(),
        vulnerabilities,
      });
      return { asked: id, shows: summary };
    },
  },
  v1: async (api, id) =>
    plain((await api.call(SecurityAdvisory.method.listVulnerabilityMetadata, { id })).items, {
      severity: 'severities',
    }),
  v2: async (api, id) =>
    plain((await api.call(SecurityAdvisoryService.method.listVulnerabilityMetadata, { id })).vulnerabilityMetadata),
};

const artifactNames = { id: 'uid', createdAt: 'createTime', updatedAt: 'updateTime' };

export const artifacts: Reading = {
  resource: 'library',
  writes: {
    async 'an import'({ api, newGroup }) {
      const name = newName();
      const versions = ['1.0', '1.1'].map((version) => ({
        ...{ name, version, description: 'a library' },
        files: [{ name: `${name}-${version}.whl`, sizeBytes: 100n, createTime: TIME }],
      }));
      await api.call(LibraryImportsService.method.importPythonLibraries, { parent: await newGroup(), versions });
      return { asked: name, shows: name };
    },
  },
  async v1(api, query) {
    const { items } = await api.call(Artifacts.method.list, { query });
    const { items: versions } = await api.call(Artifacts.method.listVersions, { id: items[0]?.id ?? '' });
    const known = versions.map((one) => {
      const { sourceType: _, malwareScanned: _scanned, malwareMalicious: _bad, ...told } = one;
      return told;
    });
    const { counts } = await api.call(Artifacts.method.getArtifactCount);
    return plain([items, known, counts.map(({ totalArtifacts }) => BigInt(totalArtifacts))], artifactNames);
  },
  async v2(api, query) {
    const ecosystems = [Ecosystem.JAVA, Ecosystem.PYTHON];
    const { artifacts } = await api.call(ArtifactsService.method.listArtifacts, { ecosystems, query });
    const artifactId = artifacts[0]?.uid ?? '';
    const { artifactVersions } = await api.call(ArtifactsService.method.listArtifactVersions, { artifactId });
    const { counts } = await api.call(ArtifactsService.method.getArtifactCount, { ecosystems });
    return plain([artifacts, artifactVersions, counts.map(({ totalCount }) => totalCount)]);
  },
};

const period = { from: time('2026-07-02T00:00:00Z'), to: time('2026-07-04T00:00:00Z') };

export const resolvedReports: Reading = {
  resource: 'report of resolved vulnerabilities',
  writes: {
    async 'a scan'(bench) {
      const repo = await newRepo(bench);
      const before = await repo.image('before', 'latest', '2026-07-01T00:00:00Z');
      const after = await repo.image('after', 'latest', '2026-07-03T00:00:00Z');
      await repo.scan(before.digest, { found: [{ id: 'CVE-2026-7001' }], time: '2026-07-01T01:00:00Z' });
      await repo.scan(after.digest, { found: [], time: '2026-07-03T01:00:00Z' });
      return { asked: repo.uid, shows: 'CVE-2026-7001' };
    },
  },
  async v1(api, repo) {
    const asked = { imageRefs: [{ repo, tags: ['latest'] }], ...period };
    return plain((await api.call(SecurityAdvisory.method.listResolvedVulnsReports, asked)).items);
  },
  async v2(api, repo) {
    const asked = { imageRefs: [{ repo, tags: ['latest'] }], startTime: period.from, endTime: period.to };
    const { resolvedVulnsReports } = await api.call(SecurityAdvisoryService.method.listResolvedVulnsReports, asked);
    return plain(resolvedVulnsReports);
  },
};
