import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ReportImportsService } from '../../src/contract/gen/wharfinger/imports/v1/reports_pb.js';
import {
  FixState,
  ReportsService,
  ScannerName,
  Severity,
} from '../../src/contract/gen/wharfinger/reports/v1/reports_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { digestOf } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';
import { newScannedRepo } from '../support/scanned-repo.ts';
import { asBytes, grypeReport, type SampleFinding, trivyReport } from '../support/scans.ts';

const { importReports } = ReportImportsService.method;
const { listReports, getReport } = ReportsService.method;

/** A small gzip file with 40 MiB of spaces. */
const bomb = gzipSync(Buffer.alloc(40 * 1024 * 1024, ' '));

const counted = ({ created, updated, unchanged }: { created: number; updated: number; unchanged: number }) => [
  created,
  updated,
  unchanged,
];

onEveryDatabaseAndWire('vulnerability reports', (fixture) => {
  test('a report is imported, listed with its counts, and read with its findings', async () => {
    const repo = await newScannedRepo(fixture);
    const { digest } = await repo.addImage('one');
    const found: SampleFinding[] = [
      { id: 'GHSA-aaaa', aliases: ['CVE-2026-1'], severity: 'Critical', fixed: '3.0.2' },
      // One vulnerability in two packages.
      { id: 'CVE-2026-2', severity: 'High' },
      { id: 'CVE-2026-2', severity: 'High', pkg: 'libssl' },
      { id: 'CVE-2026-3', severity: 'Negligible' },
      // The scanner does not know the severity, but there is a CVSS score of 7.5.
      { id: 'CVE-2026-4', severity: 'Unknown' },
      { id: 'CVE-2026-5', severity: 'Unknown', vector: 'nonsense' },
    ];
    const outcome = await repo.importReports({ content: gzipSync(asBytes(grypeReport({ findings: found, digest }))) });
    assert.deepEqual([counted(outcome), outcome.refusals], [[1, 0, 0], []]);

    const [listed] = await repo.listReports();
    assert.ok(listed?.scanner?.databaseTime && listed.scanTime && listed.createTime && listed.updateTime);
    assert.deepEqual(
      [listed.digest, listed.scanner.name, listed.scanner.version],
      [digest, ScannerName.GRYPE, '0.99.1'],
    );
    assert.equal(timestampDate(listed.scanTime).toISOString(), '2026-08-01T12:00:00.123Z');
    const { critical, high, medium, low, negligible, unknown } = listed.counts ?? assert.fail('no counts');
    assert.deepEqual([critical, high, medium, low, negligible, unknown], [1, 2, 0, 0, 1, 1]);
    assert.deepEqual(listed.findings, []);

    const { findings, ...rest } = await fixture.api.call(getReport, { uid: listed.uid });
    assert.equal(rest.uid, listed.uid);
    assert.equal(findings.length, found.length);
    const [first] = findings;
    assert.deepEqual(
      [first?.id, first?.aliases, first?.severity, first?.package?.purl, first?.fix?.state, first?.fix?.versions],
      ['GHSA-aaaa', ['CVE-2026-1'], Severity.CRITICAL, 'pkg:deb/debian/openssl@3.0.1-1', FixState.FIXED, ['3.0.2']],
    );
    assert.deepEqual([first?.cvss[0]?.version, first?.cvss[0]?.score], ['3.1', '7.5']);
    assert.equal(findings[4]?.severity, Severity.HIGH);
  });

  test('a repeated import changes nothing, a newer scan is added, and a new report of a scan replaces it', async () => {
    const repo = await newScannedRepo(fixture);
    const { digest } = await repo.addImage('one');
    const found = [{ id: 'CVE-2026-1' }];
    const first = asBytes(trivyReport({ findings: [{ id: 'CVE-2026-1' }], digest }));
    assert.deepEqual(counted(await repo.importReports({ content: first }, { content: first })), [1, 0, 1]);
    const [before] = await repo.listReports();
    assert.deepEqual(counted(await repo.importReports({ content: gzipSync(first), digest })), [0, 0, 1]);
    assert.deepEqual(await repo.listReports(), [before]);

    const later = { findings: found, time: '2026-08-02T12:00:00Z' };
    assert.deepEqual(counted(await repo.importScan(digest, later, trivyReport)), [1, 0, 0]);
    assert.deepEqual(counted(await repo.importScan(digest, later)), [1, 0, 0]);
    const copy = { ...later, findings: [...found, { id: 'CVE-2026-2' }] };
    const existing = (await repo.listReports()).find(({ scanner }) => scanner?.name === ScannerName.GRYPE);
    assert.deepEqual(counted(await repo.importScan(digest, copy)), [0, 1, 0]);
    const { uid, createTime, findings } = await fixture.api.call(getReport, { uid: existing?.uid ?? '' });
    assert.deepEqual([uid, createTime, findings.length], [existing?.uid, existing?.createTime, 2]);

    const reports = await repo.listReports();
    assert.deepEqual(
      reports.map(({ scanner, counts }) => [scanner?.name, counts?.high]).sort(),
      [
        [ScannerName.GRYPE, 2],
        [ScannerName.TRIVY, 1],
        [ScannerName.TRIVY, 1],
      ].sort(),
    );
    assert.equal(reports.at(-1)?.uid, before?.uid, 'the newest come first');
  });

  test('a report without a time gets the time of its import, and is unchanged by a second import', async () => {
    const repo = await newScannedRepo(fixture);
    const { digest } = await repo.addImage('one');
    const { descriptor, ...rest } = grypeReport({ findings: [{ id: 'CVE-2026-1' }] });
    const content = asBytes({ ...rest, descriptor: { ...descriptor, timestamp: undefined } });
    assert.deepEqual(counted(await repo.importReports({ content, digest })), [1, 0, 0]);
    assert.deepEqual(counted(await repo.importReports({ content, digest })), [0, 0, 1]);
    const [report] = await repo.listReports();
    assert.deepEqual(report?.scanTime, report?.createTime);
  });

  test('concurrent imports of one report store it once', async () => {
    const repo = await newScannedRepo(fixture);
    const { digest } = await repo.addImage('one');
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, () => repo.importScan(digest, { findings: [{ id: 'CVE-2026-1' }] })),
    );
    assert.deepEqual(outcomes.map(counted).sort(), [...Array(5).fill([0, 0, 1]), [1, 0, 0]]);
    assert.equal((await repo.listReports()).length, 1);
  });

  test('reports are filtered by image and scanner, and paged', async () => {
    const repo = await newScannedRepo(fixture);
    const [one, two] = [await repo.addImage('one'), await repo.addImage('two')];
    for (let day = 1; day <= 3; day++) {
      await repo.importScan(one.digest, { findings: [], time: `2026-08-0${day}T00:00:00Z` });
      await repo.importScan(two.digest, { findings: [], time: `2026-08-0${day}T06:00:00Z` }, trivyReport);
    }
    const within = { uidp: { descendantsOf: repo.group } };
    const ofOne = await fixture.api.call(listReports, { ...within, digest: one.digest });
    assert.deepEqual([ofOne.reports.length, ofOne.totalCount], [3, 3n]);
    const trivy = await fixture.api.call(listReports, { ...within, scanner: ScannerName.TRIVY });
    assert.deepEqual(new Set(trivy.reports.map(({ digest }) => digest)), new Set([two.digest]));
    const page = await fixture.api.call(listReports, { ...within, pageSize: 4, orderBy: 'scan_time' });
    const { pageToken, ...query } = { ...within, pageSize: 4, orderBy: 'scan_time', pageToken: page.nextPageToken };
    const rest = await fixture.api.call(listReports, { ...query, pageToken });
    const hours = [...page.reports, ...rest.reports].map(
      ({ scanTime }) => scanTime && timestampDate(scanTime).getTime(),
    );
    assert.deepEqual([hours.length, page.totalCount], [6, 6n]);
    assert.deepEqual(hours, hours.toSorted());
  });

  describe('an invalid report is refused without the others', () => {
    const good = () => asBytes(grypeReport({ findings: [{ id: 'CVE-2026-1' }] }));
    const cases: [string, () => Uint8Array, field: string, reason: RegExp][] = [
      ['not JSON', () => Buffer.from('report'), '', /valid JSON/],
      ['not UTF-8', () => Buffer.from([0x7b, 0xff, 0x7d]), '', /UTF-8/],
      ['JSON of another format', () => asBytes({ bomFormat: 'CycloneDX' }), '', /Grype or Trivy/],
      ['a list', () => asBytes([]), '', /mapping/],
      ['truncated JSON', () => good().subarray(0, 300), '', /valid JSON/],
      ['truncated gzip', () => gzipSync(good()).subarray(0, 100), '', /gzip/],
      ['a decompression bomb', () => bomb, '', /at most 32 MiB/],
      ['deeply nested JSON', () => Buffer.from('['.repeat(1000)), '', /nested/],
      [
        'a time in the future',
        () => asBytes(grypeReport({ findings: [], time: '2999-01-01T00:00:00Z' })),
        '',
        /in the future/,
      ],
      [
        'a vulnerability without an id',
        () => asBytes(grypeReport({ findings: [{ id: 'CVE-2026-1' }, { id: '' }] })),
        'matches[1].vulnerability.id',
        /one word/,
      ],
    ];
    for (const [name, damaged, field, reason] of cases) {
      test(name, async () => {
        const repo = await newScannedRepo(fixture);
        const { digest } = await repo.addImage('one');
        const outcome = await repo.importReports({ content: damaged(), digest }, { content: good(), digest });
        assert.deepEqual(counted(outcome), [1, 0, 0]);
        const [refusal, another] = outcome.refusals;
        assert.deepEqual([refusal?.index, refusal?.id, refusal?.field, another], [0, digest, field, undefined]);
        assert.match(refusal?.reason ?? '', reason);
        assert.equal((await repo.listReports()).length, 1);
      });
    }

    test('an image that the repo does not have', async () => {
      const repo = await newScannedRepo(fixture);
      const elsewhere = digestOf('elsewhere');
      const named = asBytes(trivyReport({ findings: [], digest: elsewhere }));
      const outcome = await repo.importReports({ content: good(), digest: elsewhere }, { content: named });
      assert.deepEqual(
        outcome.refusals.map(({ field }) => field),
        ['digest', 'digest'],
      );
      const { refusals } = await repo.importReports({ content: good(), digest: 'latest' });
      assert.match(refusals[0]?.reason ?? '', /sha256/);
      assert.deepEqual(await repo.listReports(), []);
    });
  });

  test('a viewer can read reports and not import them, and a caller without a role can do neither', async () => {
    const repo = await newScannedRepo(fixture);
    const { digest } = await repo.addImage('one');
    await repo.importScan(digest, { findings: [] });
    const [report] = await repo.listReports();
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', repo.group)).token());
    const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, repo.group)).token());
    const reports = [{ content: asBytes(grypeReport({ findings: [] })), digest }];
    await rejects(viewer.call(importReports, { parent: repo.uid, reports }), Code.PERMISSION_DENIED);
    await rejects(fixture.api.call(importReports, { parent: repo.group, reports }), Code.NOT_FOUND);
    await rejects(fixture.api.call(importReports, { parent: repo.uid }), Code.INVALID_ARGUMENT);
    const many = Array.from({ length: 101 }, () => reports[0] ?? {});
    await rejects(fixture.api.call(importReports, { parent: repo.uid, reports: many }), Code.INVALID_ARGUMENT);
    assert.equal((await viewer.call(getReport, { uid: report?.uid ?? '' })).digest, digest);
    await rejects(unprivileged.call(getReport, { uid: report?.uid ?? '' }), Code.PERMISSION_DENIED);
    await rejects(unprivileged.call(listReports, {}), Code.PERMISSION_DENIED);
    await rejects(fixture.api.call(getReport, { uid: `${repo.uid}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
  });

  test('deleting a repo deletes its reports', async () => {
    const repo = await newScannedRepo(fixture);
    const { digest } = await repo.addImage('one');
    await repo.importScan(digest, { findings: [{ id: 'CVE-2026-1' }] });
    await repo.importScan(digest, { findings: [] }, trivyReport);
    const left = () =>
      fixture.db.get<{ n: number }>('SELECT count(*) AS n FROM vulnerability_report WHERE repo = $1', repo.uid);
    assert.equal((await left())?.n, 2);
    await fixture.api.call(ReposService.method.deleteRepo, { uid: repo.uid });
    assert.equal((await left())?.n, 0);
    assert.deepEqual((await fixture.api.call(listReports, { uidp: { descendantsOf: repo.group } })).reports, []);
    await fixture.api.call(GroupsService.method.deleteGroup, { uid: repo.group });
  });
});
