import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { grypeSchema, trivySchema } from '../../../test/support/scan-schemas.ts';
import { grypeReport, trivyReport } from '../../../test/support/scans.ts';
import { MalformedFieldError } from '../strict-json.ts';
import { isGrype, readGrype } from './grype.ts';
import type { ScanReport } from './scan-report.ts';
import { isTrivy, readTrivy } from './trivy.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const found = [
  { id: 'GHSA-1', aliases: ['CVE-2026-1'], severity: 'Critical', fixed: '3.0.2' },
  { id: 'CVE-2026-2', severity: 'Unknown', pkg: 'zlib', version: '1.3' },
];
const upper = found.map((one) => ({ ...one, severity: one.severity.toUpperCase() }));

const ajv = new Ajv2020({ allowUnionTypes: true });
formats.default(ajv);

describe('samples follow the schemas that scanners publish', () => {
  const samples = [
    ['Grype', grypeSchema, grypeReport({ findings: found, digest: DIGEST })],
    ['Grype without a finding', grypeSchema, grypeReport({ findings: [] })],
    ['Trivy', trivySchema, trivyReport({ findings: upper, digest: DIGEST })],
    ['Trivy without a finding', trivySchema, trivyReport({ findings: [] })],
  ] as const;
  for (const [name, schema, sample] of samples) {
    test(name, () => {
      const check = ajv.compile(schema);
      assert.ok(check(sample), ajv.errorsText(check.errors));
    });
  }

  test('the schemas refuse reports of other scanners', () => {
    assert.ok(!ajv.validate(grypeSchema, trivyReport({ findings: upper })));
    assert.ok(!ajv.validate(trivySchema, grypeReport({ findings: found })));
  });
});

test('Grype', () => {
  const report = grypeReport({ findings: found, digest: DIGEST });
  assert.ok(isGrype(report) && !isTrivy(report));
  const { findings, ...scan } = readGrype(report);
  assert.deepEqual(scan, {
    scanner: 'grype',
    scannerVersion: '0.99.1',
    databaseTime: Date.parse('2026-07-31T04:00:00Z'),
    time: Date.parse('2026-08-01T12:00:00.123Z'),
    digests: [DIGEST, `sha256:${'2'.repeat(64)}`],
  } satisfies Omit<ScanReport, 'findings'>);
  assert.deepEqual(findings[0], {
    id: 'GHSA-1',
    aliases: ['CVE-2026-1'],
    severity: 'critical',
    cvss: [{ version: '3.1', vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H', score: '7.5' }],
    package: {
      name: 'openssl',
      version: '3.0.1-1',
      purl: 'pkg:deb/debian/openssl@3.0.1-1',
      type: 'deb',
      locations: ['/var/lib/dpkg/status'],
    },
    fix: { state: 'fixed', versions: ['3.0.2'] },
    description: 'What is wrong with openssl.',
    urls: ['https://example.org/GHSA-1', 'https://example.org/more'],
    source: 'debian:distro:debian:12',
  });
  assert.deepEqual(
    [findings[1]?.severity, findings[1]?.package.name, findings[1]?.fix],
    ['unknown', 'zlib', { state: 'wont fix', versions: [] }],
  );
});

test('Grype with the database of its older versions, and a scan of a directory', () => {
  const { descriptor, ...report } = grypeReport({ findings: [] });
  const old = { ...report, descriptor: { ...descriptor, db: { built: '2024-01-02T03:04:05Z' } } };
  assert.equal(readGrype(old).databaseTime, Date.parse('2024-01-02T03:04:05Z'));
  assert.deepEqual(readGrype({ ...old, source: { type: 'directory', target: '/srv' } }).digests, []);
});

test('Trivy', () => {
  const report = trivyReport({ findings: upper, digest: DIGEST });
  assert.ok(isTrivy(report) && !isGrype(report));
  const { findings, ...scan } = readTrivy(report);
  assert.deepEqual(scan, {
    scanner: 'trivy',
    scannerVersion: '',
    databaseTime: undefined,
    time: Date.parse('2026-08-01T10:00:00.123Z'),
    digests: [DIGEST],
  } satisfies Omit<ScanReport, 'findings'>);
  assert.deepEqual(findings[0], {
    id: 'GHSA-1',
    aliases: ['CVE-2026-1'],
    severity: 'critical',
    cvss: [{ version: '3.1', vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H', score: '7.5' }],
    package: {
      name: 'openssl',
      version: '3.0.1-r0',
      purl: 'pkg:apk/alpine/openssl@3.0.1-r0',
      type: 'alpine',
      locations: [],
    },
    fix: { state: 'fixed', versions: ['3.0.2'] },
    description: 'What is wrong with openssl.',
    urls: ['https://avd.example.org/GHSA-1', 'https://example.org/more'],
    source: 'alpine',
  });
  assert.deepEqual(findings[1]?.fix, { state: 'not fixed', versions: [] });
});

test('unknown severities and states are unknown, also names of object properties', () => {
  for (const name of ['constructor', '__proto__', 'toString', 'soon']) {
    const match = { vulnerability: { id: 'CVE-1', severity: name, fix: { state: name } } };
    const [grype] = readGrype({ ...grypeReport({ findings: [] }), matches: [match] }).findings;
    const vulnerability = { VulnerabilityID: 'CVE-1', Severity: name, Status: name, VendorIDs: ['', 'GHSA-1'] };
    const report = { ...trivyReport({ findings: [] }), Results: [{ Vulnerabilities: [vulnerability] }] };
    const [trivy] = readTrivy(report).findings;
    assert.deepEqual([grype?.severity, grype?.fix.state], ['unknown', 'unknown'], name);
    assert.deepEqual([trivy?.severity, trivy?.fix.state, trivy?.aliases], ['unknown', 'unknown', ['GHSA-1']], name);
  }
});

test('findings are counted before they are read', () => {
  // Each is malformed, but the limit is checked first.
  const Results = Array.from({ length: 6 }, () => ({ Vulnerabilities: Array(10_000).fill(null) }));
  assert.throws(() => readTrivy({ ...trivyReport({ findings: [] }), Results }), { field: 'Results' });
});

test('a digest is listed once, also if several names have it', () => {
  const digestsOf = (count: number) =>
    readTrivy({
      ...trivyReport({ findings: [] }),
      Metadata: { RepoDigests: Array.from({ length: count }, (_, n) => `host-${n}/app@${DIGEST}`) },
    }).digests;
  assert.deepEqual(digestsOf(50), [DIGEST]);
  assert.throws(() => digestsOf(51), { field: 'Metadata.RepoDigests' });
});

test('the error names the field with a wrong type', () => {
  const cases: [unknown, string][] = [
    [{ ...grypeReport({ findings: found }), matches: {} }, 'matches'],
    [{ ...grypeReport({ findings: found }), matches: [{ vulnerability: { id: 7 } }] }, 'matches[0].vulnerability.id'],
    [{ ...grypeReport({ findings: found }), matches: [{ vulnerability: { id: '' } }] }, 'matches[0].vulnerability.id'],
    [{ ...grypeReport({ findings: found }), descriptor: { timestamp: 'yesterday' } }, 'descriptor.timestamp'],
    [{ ...trivyReport({ findings: upper }), Results: [{ Vulnerabilities: [null] }] }, 'Results[0].Vulnerabilities[0]'],
    [{ ...trivyReport({ findings: upper }), Metadata: { RepoDigests: [1] } }, 'Metadata.RepoDigests[0]'],
  ];
  for (const [report, field] of cases) {
    const read = isGrype(report as object as never) ? readGrype : readTrivy;
    assert.throws(
      () => read(report),
      (error) => error instanceof MalformedFieldError && error.field === field,
      field,
    );
  }
});
