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
import { callerWith, stranger } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { OCI_INDEX, push, withStore } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';
import { newRepo, type ScannedRepo } from '../support/scanned-repo.ts';
import { grypeReport, trivyReport } from '../support/scans.ts';

const { getVulnReport } = Registry.method;
const { listVulnReports, getRawVulnReport } = Vulnerabilities.method;
const { listVulnCountReports, listCumulativeVulnCountReports } = Vulnerabilities.method;

const at = (time: string) => timestampFromDate(new Date(time));

everywhere('v1 reports', (bench) => {
  let repo: ScannedRepo;
  let one: { digest: string; contentSize: number };
  let two: { digest: string; contentSize: number };
  const first = {
    found: [
      { id: 'GHSA-x', aliases: ['CVE-2026-1'], severity: 'Critical', fixed: '3.0.2' },
      { id: 'GHSA-x', aliases: ['CVE-2026-1'], severity: 'Critical', fixed: '3.0.2', pkg: 'libssl' },
      { id: 'CVE-2026-2', severity: 'Negligible' },
    ],
    time: '2026-08-01T09:00:00Z',
  };

  before(async () => {
    repo = await newRepo(bench);
    one = await repo.image('one', 'latest', '2026-08-01T08:00:00Z');
    two = await repo.image('two, and larger', 'latest', '2026-08-03T08:00:00Z');
    await repo.scan(one.digest, first);
    await repo.scan(
      one.digest,
      { found: [{ id: 'CVE-2026-1', severity: 'HIGH' }], time: '2026-08-01T08:30:00Z' },
      trivyReport,
    );
    await repo.scan(two.digest, { found: [{ id: 'CVE-2026-3', severity: 'Medium' }], time: '2026-08-03T09:00:00Z' });
  });

  test('reports are listed by repo, image, tag, scanner and time, each vulnerability once', async () => {
    const list = async (filter: object) => (await bench.api.call(listVulnReports, filter)).items;
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

  test('an image is known by its digest alone, to those who may see it', async () => {
    const own = await newRepo(bench);
    const { digest } = await own.image(`only in ${own.name}`);
    await own.scan(digest, first);
    const viewer = bench.as(await (await callerWith(bench.server, 'viewer', own.group)).token());
    const other = bench.as(await (await callerWith(bench.server, 'viewer', repo.group)).token());
    assert.equal((await viewer.call(listVulnReports, { digest })).items.length, 1);
    assert.equal((await other.call(listVulnReports, { digest })).items.length, 0);
    assert.equal((await other.call(listVulnReports, { repoId: own.uid })).items.length, 0);
    await rejects(other.call(getRawVulnReport, { digest }), Code.NOT_FOUND);
    assert.ok((await viewer.call(getRawVulnReport, { digest })).rawReport);
  });

  test('what cannot be found is asked for by name', async () => {
    const fieldsOf = async (call: Promise<unknown>): Promise<readonly string[]> => {
      let fields: readonly string[] = [];
      await rejects(call, Code.INVALID_ARGUMENT, (error) => {
        fields = error.fields;
      });
      return fields;
    };
    assert.deepEqual(await fieldsOf(bench.api.call(listVulnReports, {})), ['repo_id']);
    assert.deepEqual(await fieldsOf(bench.api.call(listVulnReports, { tag: 'latest' })), ['repo_id']);
    assert.deepEqual(await fieldsOf(bench.api.call(getRawVulnReport, {})), ['digest']);
    assert.deepEqual(await fieldsOf(bench.api.call(listVulnCountReports, {})), ['repo']);
    const period = { from: at('2026-01-01T00:00:00Z'), to: at('2027-06-01T00:00:00Z') };
    assert.deepEqual(await fieldsOf(bench.api.call(listVulnCountReports, { repo: repo.uid, ...period })), ['to']);
    const references = [{ repo: repo.uid, tag: 'a b' }];
    assert.deepEqual(await fieldsOf(bench.api.call(listVulnCountReports, { references })), ['references[0].tag']);
  });

  test('the newest report on an image, match by match', async () => {
    const report = await bench.api.call(getVulnReport, { repoId: repo.uid, digest: one.digest });
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
    const index = await withStore(bench.server, (store) =>
      push(store, repo.uid, { mediaType: OCI_INDEX, manifests: [image] }),
    );
    const ofIndex = await bench.api.call(getVulnReport, { repoId: repo.uid, digest: index.digest });
    assert.equal(ofIndex.id, report.id, 'an index has the reports of its images');

    const unknown = `sha256:${'0'.repeat(64)}`;
    await rejects(bench.api.call(getVulnReport, { repoId: repo.uid, digest: unknown }), Code.NOT_FOUND);
    const nobody = bench.as(await (await stranger(bench.server, repo.group)).token());
    await rejects(nobody.call(getVulnReport, { repoId: repo.uid, digest: one.digest }), Code.PERMISSION_DENIED);
  });

  test('a report comes back as it was sent', async () => {
    const newest = await bench.api.call(getRawVulnReport, { digest: one.digest });
    assert.deepEqual(JSON.parse(newest.rawReport), JSON.parse(JSON.stringify(grypeReport(first))));
    const trivy = await bench.api.call(getRawVulnReport, { digest: one.digest, scanner: Scanner_Name.TRIVY });
    assert.equal(JSON.parse(trivy.rawReport).ArtifactType, 'container_image');
    assert.ok(trivy.createdAt);
    const again = await bench.api.call(getRawVulnReport, { digest: one.digest, createdAt: trivy.createdAt });
    assert.equal(again.rawReport, trivy.rawReport);
    const createdAt = at('2026-08-01T08:31:00Z');
    await rejects(bench.api.call(getRawVulnReport, { digest: one.digest, createdAt }), Code.NOT_FOUND);
  });

  const dayOf = ({ date }: VulnCountReport) => date && timestampDate(date).toISOString().slice(8, 10);
  const idsOf = (report: VulnCountReport) => [dayOf(report), report.cveIds.join(' ')];

  test('counts by day are those of all scanners of the image that the tag pointed to', async () => {
    const period = { from: at('2026-07-31T00:00:00Z'), to: at('2026-08-03T00:00:00Z') };
    const { items } = await bench.api.call(listVulnCountReports, { repo: repo.uid, tag: 'latest', ...period });
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
    const both = await bench.api.call(listVulnCountReports, { references, from: period.to, to: period.to });
    assert.deepEqual(
      both.items.map(({ repo }) => repo),
      [repo.name, repo.uid],
    );
  });

  test('cumulative counts forget nothing', async () => {
    const period = { from: at('2026-08-02T00:00:00Z'), to: at('2026-08-04T00:00:00Z') };
    const { items } = await bench.api.call(listCumulativeVulnCountReports, { repo: repo.uid, ...period });
    const all = 'CVE-2026-1 CVE-2026-2 CVE-2026-3';
    assert.deepEqual(items.map(idsOf), [
      ['02', 'CVE-2026-1 CVE-2026-2'],
      ['03', all],
      ['04', all],
    ]);
  });

  test('resolved vulnerabilities are those of v2', async () => {
    const { items } = await bench.api.call(SecurityAdvisory.method.listResolvedVulnsReports, {
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
      bench.api.call(SecurityAdvisory.method.listResolvedVulnsReports, backwards),
      Code.INVALID_ARGUMENT,
      (error) => assert.deepEqual(error.fields, ['to']),
    );
  });
});
