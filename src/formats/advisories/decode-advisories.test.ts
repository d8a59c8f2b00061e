import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { advisoryYaml, openVex, pypiOsv, withdrawnOsv } from '../../../test/support/advisory-samples.ts';
import { openVexSchema, osvSchema } from '../../../test/support/advisory-schemas.ts';
import { deriveAdvisoryId } from './advisory-id.ts';
import type { AdvisoryJson, EventJson } from './advisory-json.ts';
import { arbitraryAdvisory } from './arbitrary-advisory.testing.ts';
import { decodeAdvisories, decodeVulnerabilityMetadata } from './decode-advisories.ts';
import { encodeOpenVex } from './openvex/encode.ts';
import { encodeOsv } from './osv/encode.ts';

const ajv = new Ajv2020({ allErrors: true });
formats.default(ajv);
const isOsv = ajv.compile(osvSchema);
const isOpenVex = ajv.compile(openVexSchema);

/** Decodes a file of which no record may be refused. */
function decodeAll(text: string): AdvisoryJson[] {
  return decodeAdvisories(text).map((decoded) => ('record' in decoded ? decoded.record : assert.fail(decoded.reason)));
}

const refusalsOf = (text: string): string[] =>
  decodeAdvisories(text).map((decoded) => ('record' in decoded ? 'decoded' : `${decoded.field}: ${decoded.reason}`));

const approved = { reviewState: 'REVIEW_STATE_APPROVED' };
const eventTypesOf = ({ events = [] }: AdvisoryJson): string[] =>
  events.flatMap((event) =>
    Object.keys(event).filter((key) => !['createTime', 'reviewState', 'findings'].includes(key)),
  );

describe('advisory YAML', () => {
  const [curl, other, third] = decodeAll(advisoryYaml);

  test('an advisory has the fields of the file and the component of its scan', () => {
    assert.deepEqual(curl, {
      advisoryId: 'CGA-2222-3333-4444',
      artifactName: 'curl',
      artifactType: 'apk',
      componentName: 'golang.org/x/net',
      componentType: 'go-module',
      componentLocation: '/usr/bin/curl',
      aliases: ['CVE-2024-0001', 'GHSA-2222-3333-4444'],
      events: [
        {
          createTime: '2024-05-07T19:43:55.000Z',
          ...approved,
          detection: {
            scanv1: {
              scanner: 'grype',
              subpackage: 'libcurl',
              componentId: '0123456789abcdef',
              component: 'golang.org/x/net',
              componentVersion: 'v0.17.0',
              componentType: 'go-module',
              componentLocation: '/usr/bin/curl',
            },
          },
        },
        // A version is a string. Times are converted to UTC.
        { createTime: '2024-05-08T05:00:00.000Z', ...approved, fixed: { fixedVersion: '1.10' } },
      ],
    });
    assert.deepEqual(other?.events?.[1]?.falsePositiveDetermination, {
      type: 'TYPE_VULNERABLE_CODE_NOT_INCLUDED_IN_PACKAGE',
      note: 'Only the tests have it.',
    });
    const note = 'The fix needs a newer library,\nwhich upstream has not taken in: see #42.\n';
    assert.deepEqual(third?.events?.[1]?.pendingUpstreamFix, { note });
  });

  test('all schema versions are accepted, quoted or not', () => {
    for (const version of ['2', '"2"', "'2'", '2.0.1', '"2.0.2"']) {
      assert.equal(decodeAll(advisoryYaml.replace('2.0.2', version)).length, 3, version);
    }
    for (const version of ['1', '3.0.0', 'two', '{}']) {
      assert.match(refusalsOf(advisoryYaml.replace('2.0.2', version))[0] ?? '', /^schema-version: /, version);
    }
  });

  test('an advisory with the id of its vulnerability gets a derived id', () => {
    const [first] = decodeAll(advisoryYaml.replace('CGA-2222-3333-4444', 'CVE-2024-9999'));
    assert.equal(first?.advisoryId, deriveAdvisoryId('CVE-2024-9999', 'apk', 'curl'));
    assert.deepEqual(first?.aliases, ['CVE-2024-9999', 'CVE-2024-0001', 'GHSA-2222-3333-4444']);
  });

  test('a malformed advisory is refused with its field, and the others are decoded', () => {
    const damage = (from: string, to: string) => refusalsOf(advisoryYaml.replace(from, to))[0];
    const cases: readonly [from: string, to: string, refusal: string | RegExp][] = [
      ['id: CGA-2222-3333-4444', 'name: x', 'advisories[0].id: is missing'],
      ['fixed-version: 1.10', 'version: 1.10', 'advisories[0].events[1].data.fixed-version: is missing'],
      ['type: fixed', 'type: solved', 'advisories[0].events[1].type: is not an event type: "solved"'],
      ['type: scan/v1', 'type: scan/v9', 'advisories[0].events[0].data.type: must be scan/v1, nvdapi or manual'],
      ['2024-05-07T19:43:55Z', 'yesterday', /^advisories\[0\]\.events\[0\]\.timestamp: must be a time/],
      ['2024-05-07T19:43:55Z', '2024-02-30T19:43:55Z', /^advisories\[0\]\.events\[0\]\.timestamp: must be a time/],
      ['2024-05-07T19:43:55Z', '2024-13-07T19:43:55Z', /^advisories\[0\]\.events\[0\]\.timestamp: must be a time/],
      ['- CVE-2024-0001', '- [CVE-2024-0001]', 'advisories[0].aliases[0]: must be a string'],
      ['name: curl', 'title: curl', 'package.name: is missing'],
      ['advisories:', 'advisories: none\nrest:', 'advisories: must be a list'],
      ['name: curl', 'name: "curl', ': is not YAML: Missing closing "quote at line 58'],
      ['name: curl', 'name: curl\n  name: git', ': is not YAML: duplicate key in the mapping that begins at line 4'],
    ];
    for (const [from, to, refusal] of cases) {
      const found = damage(from, to) ?? '';
      if (typeof refusal === 'string') assert.equal(found, refusal);
      else assert.match(found, refusal);
    }
    assert.deepEqual(refusalsOf(advisoryYaml.replace('type: fixed', 'type: solved')).slice(1), ['decoded', 'decoded']);
  });

  test('documents with exploding aliases or deep nesting are refused', () => {
    const bomb = `a: &a [x, x, x, x, x, x, x, x, x]\n${'bcdefghij'
      .split('')
      .map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghij'[at]}`).join(', ')}]`)
      .join('\n')}\n`;
    assert.match(refusalsOf(bomb)[0] ?? '', /is not YAML: Excessive alias count/);
    const pairs = Array.from({ length: 101 }, (_, at) => `- &a${at} x\n- *a${at}\n`).join('');
    assert.equal(refusalsOf(`a:\n${pairs}`)[0], ': has more than 100 aliases');
    assert.match(refusalsOf(`a: ${'['.repeat(20_000)}`)[0] ?? '', /is not YAML/);
    assert.match(
      decodeAdvisories('['.repeat(20_000)).map((one) => ('reason' in one ? one.reason : ''))[0] ?? '',
      /is nested more than 64 levels deep/,
    );
  });
});

describe('OSV', () => {
  test('the samples follow the schema', () => {
    for (const sample of [pypiOsv, withdrawnOsv]) assert.ok(isOsv(sample), ajv.errorsText(isOsv.errors));
    assert.ok(!isOsv({ ...withdrawnOsv, withdrawn: 'yes' }), 'the schema refuses invalid records');
  });

  test('a record becomes an advisory for each package', () => {
    const [python, debian, ...none] = decodeAll(JSON.stringify(pypiOsv));
    assert.equal(none.length, 0);
    const { events, ...rest } = python ?? assert.fail();
    assert.deepEqual(rest, {
      advisoryId: deriveAdvisoryId('PYSEC-2024-1', 'PyPI', 'example'),
      artifactName: 'example',
      artifactType: 'pypi',
      componentName: 'example',
      componentType: 'PyPI',
      aliases: ['PYSEC-2024-1', 'CVE-2024-1111', 'GHSA-aaaa-bbbb-cccc'],
      severities: [{ type: 'TYPE_CVSS_V3', score: pypiOsv.severity[0]?.score }],
    });
    // Sorted by PEP 440, without commits.
    const fixed = (event: EventJson) => event.fixed?.fixedVersion;
    assert.deepEqual(events?.map(fixed), [undefined, '2.0.10', '2.1.3']);
    assert.deepEqual([debian?.artifactType, debian?.componentType], ['deb', 'Debian:12']);
    assert.deepEqual(eventTypesOf(debian ?? assert.fail()), ['detection', 'truePositiveDetermination']);
    assert.deepEqual(debian?.severities?.[0]?.type, 'TYPE_CVSS_V4');
  });

  test('the newest range event is found by the version scheme of the ecosystem', () => {
    const fixes: readonly [ecosystem: string, introduced: string, fixed: string][] = [
      ['RubyGems', '5.2.0', '5.2.4.3'],
      ['RubyGems', '6.0.0.beta1', '6.0.0.rc2'],
      ['NuGet', '4.7.0', '4.7.2558.1'],
      ['Packagist', '1.0.0', 'v1.2.3.4'],
      ['crates.io', '1.0.0-rc.1', '1.0.0'],
    ];
    for (const [ecosystem, introduced, fixed] of fixes) {
      const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced }, { fixed }] }];
      const [advisory] = decodeAll(
        JSON.stringify({ ...pypiOsv, affected: [{ package: { ecosystem, name: 'x' }, ranges }] }),
      );
      assert.deepEqual(eventTypesOf(advisory ?? assert.fail()), ['detection', 'fixed'], `${ecosystem} ${fixed}`);
    }
  });

  test('a withdrawn record becomes a deleted advisory', () => {
    const [advisory] = decodeAll(JSON.stringify(withdrawnOsv));
    assert.equal(advisory?.deleteTime, '2024-05-03T12:00:00.000Z');
    assert.deepEqual(eventTypesOf(advisory ?? assert.fail()), ['detection', 'fixed']);
  });

  test('the affected entry is exported unchanged', () => {
    const [advisory] = decodeAll(JSON.stringify(withdrawnOsv));
    const { affected } = encodeOsv(advisory ?? assert.fail()) as unknown as typeof withdrawnOsv;
    const { package: _package, ...entry } = affected[0] ?? assert.fail();
    const { package: _originalPackage, ...original } = withdrawnOsv.affected[0] ?? assert.fail();
    assert.deepEqual(entry, original);
  });

  test('a summary with many spaces between two words is decoded in linear time', { timeout: 20_000 }, () => {
    const [found] = decodeVulnerabilityMetadata(
      JSON.stringify({ ...pypiOsv, summary: `Two${' '.repeat(500_000)}words` }),
    );
    assert.ok(found && 'record' in found);
  });

  test('the vulnerability metadata of a record', () => {
    assert.deepEqual(decodeVulnerabilityMetadata(JSON.stringify({ ...pypiOsv, summary: 'Two\nlines' })), [
      {
        id: 'PYSEC-2024-1',
        record: {
          id: 'PYSEC-2024-1',
          aliases: ['CVE-2024-1111', 'GHSA-aaaa-bbbb-cccc'],
          summary: 'Two lines',
          details: 'A header that is **too long** is cut.',
          references: [
            { type: 'TYPE_ADVISORY', url: 'https://example.com/advisory' },
            { type: 'TYPE_FIX', url: 'https://example.com/commit/c0ffee' },
          ],
          severities: [{ type: 'TYPE_CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N' }],
        },
      },
    ]);
  });

  test('a malformed record is refused with its field', () => {
    const damaged = (change: object) => refusalsOf(JSON.stringify({ ...pypiOsv, ...change }))[0];
    assert.equal(damaged({ id: undefined }), 'id: is missing');
    assert.equal(damaged({ id: 7 }), 'id: must be a string');
    assert.equal(damaged({ modified: undefined }), 'modified: is missing');
    assert.equal(damaged({ affected: [] }), 'affected: must name at least one package');
    assert.equal(damaged({ affected: [{ package: { name: 'x' } }] }), 'affected[0].package.ecosystem: is missing');
    assert.equal(damaged({ aliases: ['\ud800'] }), 'aliases[0]: must be valid Unicode without half surrogate pairs');
    assert.equal(
      damaged({ severity: [{ type: 'CVSS_V3', score: '9.8' }] }),
      'severity[0].score: is not a vector of CVSS 3',
    );
    const range = { type: 'SEMVER', events: [{ fixed: '1.0.0' }] };
    const affected = [{ package: { ecosystem: 'Go', name: 'x' }, ranges: [range] }];
    assert.equal(damaged({ affected }), 'affected[0].ranges[0].events: must have an introduced event');
    const other = { package: { ecosystem: 'Go', name: 'y' }, severity: [{ type: 'CVSS_V2', score: 'high' }] };
    assert.equal(
      damaged({ affected: [pypiOsv.affected[0], other] }),
      'affected[1].severity[0].score: is not a vector of CVSS 2',
    );
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    assert.deepEqual(refusalsOf(`{"affected": ${deep}}`), [': is nested more than 64 levels deep']);
    assert.deepEqual(refusalsOf('{"id": '), [': is not JSON: it ends too early']);
    assert.deepEqual(refusalsOf('{"id": "x"'), [': is not JSON at position 10']);
  });
});

describe('OpenVEX', () => {
  test('the sample follows the schema', () => {
    assert.ok(isOpenVex(openVex), ajv.errorsText(isOpenVex.errors));
    assert.ok(
      !isOpenVex({ ...openVex, statements: [{ ...openVex.statements[0], status: 'affected' }] }),
      'the schema refuses invalid documents',
    );
  });

  test('a document with 60000 statements is decoded in linear time', () => {
    const statements = Array(60_000).fill({ vulnerability: 'CVE-2024-1', products: ['x'], status: 'fixed' });
    const start = process.cpuUsage();
    const [advisory] = decodeAll(JSON.stringify({ ...openVex, statements }));
    assert.equal(advisory?.events?.length, 60_000);
    assert.ok(process.cpuUsage(start).user < 3_000_000);
  });

  test('statements about one product and vulnerability are the events of one advisory', () => {
    const [git, notAffected, image, django, ...none] = decodeAll(JSON.stringify(openVex));
    assert.equal(none.length, 0);
    assert.deepEqual(git, {
      advisoryId: deriveAdvisoryId('CVE-2024-3333', '["apk","git","x86_64"]'),
      author: 'Example Security Team',
      artifactName: 'git',
      artifactType: 'apk',
      artifactArchitecture: 'x86_64',
      componentName: 'golang.org/x/crypto',
      componentType: 'golang',
      aliases: ['CVE-2024-3333'],
      events: [
        { createTime: '2024-05-01T00:00:00.000Z', ...approved, detection: { manual: {} } },
        { createTime: '2024-05-02T00:00:00.000Z', ...approved, fixed: { fixedVersion: '2.45.0-r1' } },
      ],
    });
    assert.deepEqual(notAffected?.events?.[0]?.falsePositiveDetermination, {
      type: 'TYPE_VULNERABLE_CODE_NOT_IN_EXECUTION_PATH',
      note: 'Nothing calls it.',
    });
    assert.deepEqual(
      [image?.artifactType, image?.artifactName, image?.aliases],
      ['oci', 'image', notAffected?.aliases],
    );
    assert.deepEqual(django?.events?.[0]?.truePositiveDetermination, { note: 'Upgrade to 4.3.' });
  });

  test('one malformed statement refuses the document, because the others may be about the same advisory', () => {
    const damaged = (change: object) =>
      refusalsOf(
        JSON.stringify({ ...openVex, statements: [...openVex.statements, { ...openVex.statements[0], ...change }] }),
      );
    assert.deepEqual(damaged({ status: 'fine' }), [
      'statements[4].status: must be one of not_affected, affected, fixed, under_investigation',
    ]);
    assert.deepEqual(damaged({ products: [] }), ['statements[4].products: must name at least one product']);
    assert.deepEqual(damaged({ vulnerability: {} }), ['statements[4].vulnerability.name: is missing']);
    assert.deepEqual(damaged({ timestamp: 'now' }), [
      'statements[4].timestamp: must be a time such as 2024-05-07T19:43:55Z',
    ]);
    assert.deepEqual(damaged({ '@id': 'urn:x-wharfinger:CGA#!!' }), [
      'statements[4].@id: must be an id that an export of this server wrote',
    ]);
  });
});

test('exports are valid by the schemas, for all advisories', () => {
  const advisories = arbitraryAdvisory.map((advisory) => ({
    ...advisory,
    artifactType: 'apk',
    componentType: 'go-module',
  }));
  fc.assert(
    fc.property(advisories, (advisory) => {
      assert.ok(isOsv(JSON.parse(JSON.stringify(encodeOsv(advisory)))), ajv.errorsText(isOsv.errors));
      const document = encodeOpenVex(advisory.artifactName, [advisory]);
      assert.ok(isOpenVex(JSON.parse(JSON.stringify(document))), ajv.errorsText(isOpenVex.errors));
    }),
    { seed: 5 },
  );
});
