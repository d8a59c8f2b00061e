import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { SecurityAdvisory } from '../../src/contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import { Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import {
  Scanner_Name,
  Vulnerability_Severity as Severity,
  Vulnerability_Fix_State as State,
  type VulnCountReport,
  Vulnerabilities,
} from '../../src/contract/gen/platform/registry/v1/vulnerabilities.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { insertImage, insertManifest, OCI_INDEX, withStore } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';
import { newScannedRepo, type ScannedRepo } from '../support/scanned-repo.ts';
import { grypeReport, trivyReport } from '../support/scans.ts';

const { getVulnReport } = Registry.method;
const { listVulnReports, getRawVulnReport } = Vulnerabilities.method;
const { listVulnCountReports, listCumulativeVulnCountReports } = Vulnerabilities.method;

const at = (time: string) => timestampFromDate(new Date(time));

onEveryDatabaseAndWire('v1 reports', (fixture) => {
  let repo: ScannedRepo;
  let one: { digest: string; contentSize: number };
  let two: { digest: string; contentSize: number };
  const first = {
    findings: [
      { id: 'GHSA-x', aliases: ['CVE-2026-1'], severity: 'Critical', fixed: '3.0.2' },
      { id: 'GHSA-x', aliases: ['CVE-2026-1'], severity: 'Critical', fixed: '3.0.2', pkg: 'libssl' },
      { id: 'CVE-2026-2', severity: 'Negligible' },
    ],
    time: '2026-08-01T09:00:00Z',
  };

  before(async () => {
    repo = await newScannedRepo(fixture);
    one = await repo.addImage('one', 'latest', '2026-08-01T08:00:00Z');
    two = await repo.addImage('two, and larger', 'latest', '2026-08-03T08:00:00Z');
    await repo.importScan(one.digest, first);
    await repo.importScan(
      one.digest,
      { findings: [{ id: 'CVE-2026-1', severity: 'HIGH' }], time: '2026-08-01T08:30:00Z' },
      trivyReport,
    );
    await repo.importScan(two.digest, {
      findings: [{ id: 'CVE-2026-3', severity: 'Medium' }],
      time: '2026-08-03T09:00:00Z',
    });
  });

  test('reports are listed by repo, image, tag, scanner and time, each vulnerability once', async () => {
    const list = async (filter: object) => (await fixture.api.call(listVulnReports, filter)).items;
    const digests = async (filter: object) => (await list(filter)).map(({ digest }) => digest);
    assert.deepEqual(await digests({ repoId: repo.uid }), [two.digest, one.digest, one.digest]);
    assert.deepEqual(await digests({ repoId: repo.uid, tag: 'latest' }), [two.digest]);
    assert.deepEqual(await digests({ repoId: repo.uid, tag: 'latest', digest: one.digest }), []);
    assert.deepEqual(await digests({ repoId: repo.uid, createdSince: at('2026-08-02T00:00:00Z') }), [two.digest]);
    assert.deepEqual(await digests({ repoId: repo.uid, scanner: { name: Scanner_Name.TRIVY } }), [one.digest]);
    assert.deepEqual(await digests({ repoId: repo.uid, scanner: { version: '0.99.1' }, digest: one.digest }), [
      one.digest,
    ]);

    const [report] = await list({ repoId: repo.uid, digest: one.digest });
    assert.deepEqual([report?.scanner?.name, report?.scanner?.version], [Scanner_Name.GRYPE, '0.99.1']);
    assert.equal(report?.createdAt && timestampDate(report.createdAt).toISOString(), '2026-08-01T09:00:00.000Z');
    const [grave, light, third] = report?.vulnerabilities ?? [];
    assert.equal(third, undefined);
    assert.deepEqual([grave?.id, grave?.aliases, grave?.severity], ['GHSA-x', ['CVE-2026-1'], Severity.CRITICAL]);
    assert.deepEqual(grave?.purls, ['pkg:deb/debian/openssl@3.0.1-1', 'pkg:deb/debian/libssl@3.0.1-1']);
    assert.deepEqual([grave?.fix?.state, grave?.fix?.versions], [State.FIXED, ['3.0.2']]);
    assert.deepEqual([grave?.cvss[0]?.score, grave?.cvss[0]?.version], ['7.5', '3.1']);
    assert.equal(light?.severity, Severity.NEGLIGIBLE);
  });

  test('an image can be given by its digest alone, if the caller can see it', async () => {
    const ownRepo = await newScannedRepo(fixture);
    const { digest } = await ownRepo.addImage(`only in ${ownRepo.name}`);
    await ownRepo.importScan(digest, first);
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', ownRepo.group)).token());
    const other = fixture.as(await (await callerWithRole(fixture.server, 'viewer', repo.group)).token());
    assert.equal((await viewer.call(listVulnReports, { digest })).items.length, 1);
    assert.equal((await other.call(listVulnReports, { digest })).items.length, 0);
    assert.equal((await other.call(listVulnReports, { repoId: ownRepo.uid })).items.length, 0);
    await rejects(other.call(getRawVulnReport, { digest }), Code.NOT_FOUND);
    assert.ok((await viewer.call(getRawVulnReport, { digest })).rawReport);
  });

  test('validation errors name the missing or invalid field', async () => {
    const fieldsOf = async (call: Promise<unknown>): Promise<readonly string[]> => {
      let fields: readonly string[] = [];
      await rejects(call, Code.INVALID_ARGUMENT, (error) => {
        fields = error.fields;
      });
      return fields;
    };
    assert.deepEqual(await fieldsOf(fixture.api.call(listVulnReports, {})), ['repo_id']);
    assert.deepEqual(await fieldsOf(fixture.api.call(listVulnReports, { tag: 'latest' })), ['repo_id']);
    assert.deepEqual(await fieldsOf(fixture.api.call(getRawVulnReport, {})), ['digest']);
    assert.deepEqual(await fieldsOf(fixture.api.call(listVulnCountReports, {})), ['repo']);
    const period = { from: at('2026-01-01T00:00:00Z'), to: at('2027-06-01T00:00:00Z') };
    assert.deepEqual(await fieldsOf(fixture.api.call(listVulnCountReports, { repo: repo.uid, ...period })), ['to']);
    const references = [{ repo: repo.uid, tag: 'a b' }];
    assert.deepEqual(await fieldsOf(fixture.api.call(listVulnCountReports, { references })), ['references[0].tag']);
  });

  test('the newest report of an image is returned with all its matches', async () => {
    const report = await fixture.api.call(getVulnReport, { repoId: repo.uid, digest: one.digest });
    assert.deepEqual([report.scanner?.name, report.scanner?.version], ['grype', '0.99.1']);
    assert.equal(report.vulnerabilityMatches.length, 3);
    const [match] = report.vulnerabilityMatches;
    assert.deepEqual(
      [match?.vulnerability?.id, match?.pkg?.name, match?.pkg?.version, match?.fix?.versions],
      ['GHSA-x', 'openssl', '3.0.1-1', ['3.0.2']],
    );
    assert.deepEqual(
      match?.vulnerability?.relatedVulnerabilities.map(({ id }) => id),
      ['CVE-2026-1'],
    );
    assert.ok(report.reportGeneration && report.vulnerabilityDbLastBuildTime);

    const { contentSize, ...image } = one as typeof one & { mediaType: string; size: number };
    const index = await withStore(fixture.server, (store) =>
      insertManifest(store, repo.uid, { mediaType: OCI_INDEX, manifests: [image] }),
    );
    const ofIndex = await fixture.api.call(getVulnReport, { repoId: repo.uid, digest: index.digest });
    assert.equal(ofIndex.id, report.id, 'an index has the reports of its images');

    const unknown = `sha256:${'0'.repeat(64)}`;
    await rejects(fixture.api.call(getVulnReport, { repoId: repo.uid, digest: unknown }), Code.NOT_FOUND);
    const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, repo.group)).token());
    await rejects(unprivileged.call(getVulnReport, { repoId: repo.uid, digest: one.digest }), Code.PERMISSION_DENIED);
  });

  test('a raw report is returned unchanged', async () => {
    const newest = await fixture.api.call(getRawVulnReport, { digest: one.digest });
    assert.deepEqual(JSON.parse(newest.rawReport), JSON.parse(JSON.stringify(grypeReport(first))));
    const trivy = await fixture.api.call(getRawVulnReport, { digest: one.digest, scanner: Scanner_Name.TRIVY });
    assert.equal(JSON.parse(trivy.rawReport).ArtifactType, 'container_image');
    assert.ok(trivy.createdAt);
    const again = await fixture.api.call(getRawVulnReport, { digest: one.digest, createdAt: trivy.createdAt });
    assert.equal(again.rawReport, trivy.rawReport);
    const createdAt = at('2026-08-01T08:31:00Z');
    await rejects(fixture.api.call(getRawVulnReport, { digest: one.digest, createdAt }), Code.NOT_FOUND);
  });

  const dayOf = ({ date }: VulnCountReport) => date && timestampDate(date).toISOString().slice(8, 10);
  const idsOf = (report: VulnCountReport) => [dayOf(report), report.cveIds.join(' ')];

  test('daily counts include all scanners of the image that the tag pointed to', async () => {
    const period = { from: at('2026-07-31T00:00:00Z'), to: at('2026-08-03T00:00:00Z') };
    const { items } = await fixture.api.call(listVulnCountReports, { repo: repo.uid, tag: 'latest', ...period });
    assert.deepEqual(items.map(idsOf), [
      ['01', 'CVE-2026-1 CVE-2026-2'],
      ['02', 'CVE-2026-1 CVE-2026-2'],
      ['03', 'CVE-2026-3'],
    ]);
    const [day, , last] = items;
    assert.deepEqual([day?.repo, day?.tag, day?.sizeBytes], [repo.uid, 'latest', BigInt(one.contentSize)]);
    assert.equal(last?.sizeBytes, BigInt(two.contentSize));
    assert.deepEqual([day?.critCveIds, day?.negligibleCveIds, day?.highCveIds], [['CVE-2026-1'], ['CVE-2026-2'], []]);
    const counts = Object.fromEntries(day?.vulnCounts.map(({ severity, count }) => [Severity[severity], count]) ?? []);
    assert.deepEqual(counts, { CRITICAL: 1, HIGH: 0, MEDIUM: 0, LOW: 0, NEGLIGIBLE: 1, UNKNOWN: 0 });

    const references = [{ repo: repo.name, tag: 'latest' }, { repo: repo.uid }];
    const both = await fixture.api.call(listVulnCountReports, { references, from: period.to, to: period.to });
    assert.deepEqual(
      both.items.map(({ repo }) => repo),
      [repo.name, repo.uid],
    );
  });

  test('cumulative counts include all earlier vulnerabilities', async () => {
    const period = { from: at('2026-08-02T00:00:00Z'), to: at('2026-08-04T00:00:00Z') };
    const { items } = await fixture.api.call(listCumulativeVulnCountReports, { repo: repo.uid, ...period });
    const all = 'CVE-2026-1 CVE-2026-2 CVE-2026-3';
    assert.deepEqual(items.map(idsOf), [
      ['02', 'CVE-2026-1 CVE-2026-2'],
      ['03', all],
      ['04', all],
    ]);
  });

  test('a repo with more than 100 tags is counted', async () => {
    const many = await newScannedRepo(fixture);
    const names = Array.from({ length: 130 }, (_, i) => `v${i}`);
    const { digest } = await withStore(fixture.server, async (store) => {
      const now = Date.parse('2026-08-01T08:00:00Z');
      let image = await insertImage(store, many.uid, 'v0', { content: 'many', now });
      for (const tag of names) image = await insertImage(store, many.uid, tag, { content: 'many', now });
      return image;
    });
    await many.importScan(digest, { findings: [{ id: 'CVE-2026-9', severity: 'Low' }], time: '2026-08-01T09:00:00Z' });
    const period = { from: at('2026-08-01T00:00:00Z'), to: at('2026-08-30T00:00:00Z') };
    for (const method of [listVulnCountReports, listCumulativeVulnCountReports]) {
      const { items } = await fixture.api.call(method, { repo: many.uid, ...period });
      assert.equal(items.length, 130 * 30);
      assert.deepEqual(new Set(items.map(({ tag }) => tag)), new Set(names));
      assert.ok(items.every(({ cveIds }) => cveIds.join() === 'CVE-2026-9'));
    }
  });

  test('resolved vulnerabilities are the same as in v2', async () => {
    const { items } = await fixture.api.call(SecurityAdvisory.method.listResolvedVulnsReports, {
      imageRefs: [{ repo: repo.uid, tags: ['latest'] }],
      from: at('2026-08-02T00:00:00Z'),
      to: at('2026-08-04T00:00:00Z'),
    });
    assert.deepEqual(
      items.map(({ resolvedVulns }) => resolvedVulns.map(({ id, aliases }) => [id, aliases])),
      [
        [
          ['CVE-2026-1', ['GHSA-x']],
          ['CVE-2026-2', []],
        ],
      ],
    );
    const backwards = { from: at('2026-08-02T00:00:00Z'), to: at('2026-08-01T00:00:00Z') };
    await rejects(
      fixture.api.call(SecurityAdvisory.method.listResolvedVulnsReports, backwards),
      Code.INVALID_ARGUMENT,
      (error) => assert.deepEqual(error.fields, ['to']),
    );
  });
});
