/** Advisory files in every supported format, as the tools of the format write them. */

export const advisoryYaml = `schema-version: 2.0.2

package:
  name: curl

advisories:
  - id: CGA-2222-3333-4444
    aliases:
      - CVE-2024-0001
      - GHSA-2222-3333-4444
    events:
      - timestamp: 2024-05-07T19:43:55Z
        type: detection
        data:
          type: scan/v1
          data:
            subpackageName: libcurl
            componentID: 0123456789abcdef
            componentName: golang.org/x/net
            componentVersion: v0.17.0
            componentType: go-module
            componentLocation: /usr/bin/curl
            scanner: grype
      - timestamp: 2024-05-08T07:00:00+02:00
        type: fixed
        data:
          fixed-version: 1.10

  - id: CGA-5555-6666-7777
    aliases:
      - CVE-2024-0002
    events:
      - timestamp: 2024-05-07T19:43:55Z
        type: detection
        data:
          type: nvdapi
          data:
            cpeSearched: cpe:2.3:a:haxx:curl:*:*:*:*:*:*:*:*
            cpeFound: cpe:2.3:a:haxx:curl:8.4.0:*:*:*:*:*:*:*
      - timestamp: 2024-05-09T00:00:00Z
        type: false-positive-determination
        data:
          type: vulnerable-code-not-included-in-package
          note: Only the tests have it.

  - id: CGA-8888-9999-cccc
    events:
      - timestamp: 2024-05-07T19:43:55Z
        type: detection
        data:
          type: manual
      - timestamp: 2024-05-10T00:00:00Z
        type: pending-upstream-fix
        data:
          note: |
            The fix needs a newer library,
            which upstream has not taken in: see #42.
`;

export const pypiOsv = {
  schema_version: '1.7.0',
  id: 'PYSEC-2024-1',
  modified: '2024-06-01T00:00:00Z',
  published: '2024-05-01T12:00:00Z',
  aliases: ['CVE-2024-1111', 'GHSA-aaaa-bbbb-cccc'],
  summary: 'Request smuggling',
  details: 'A header that is **too long** is cut.',
  severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N' }],
  affected: [
    {
      package: { ecosystem: 'PyPI', name: 'example', purl: 'pkg:pypi/example' },
      ranges: [
        { type: 'GIT', repo: 'https://example.com/repo', events: [{ introduced: '0' }, { fixed: 'c0ffee' }] },
        {
          type: 'ECOSYSTEM',
          events: [{ introduced: '0' }, { fixed: '2.0.10' }, { introduced: '2.1' }, { fixed: '2.1.3' }],
        },
      ],
      versions: ['2.0.9', '2.1'],
    },
    {
      package: { ecosystem: 'Debian:12', name: 'python-example' },
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }] }],
      severity: [{ type: 'CVSS_V4', score: 'CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:N/VA:N/SC:N/SI:N/SA:N' }],
    },
  ],
  references: [
    { type: 'ADVISORY', url: 'https://example.com/advisory' },
    { type: 'FIX', url: 'https://example.com/commit/c0ffee' },
  ],
  credits: [{ name: 'Somebody', type: 'FINDER' }],
};

export const withdrawnOsv = {
  schema_version: '1.3.1',
  id: 'GO-2024-0001',
  modified: '0001-01-01T00:00:00Z',
  published: '2024-05-01T12:00:00Z',
  withdrawn: '2024-05-03T12:00:00Z',
  affected: [
    {
      package: { ecosystem: 'Go', name: 'example.com/module' },
      ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }, { fixed: '1.6.0' }] }],
      ecosystem_specific: { imports: [{ path: 'example.com/module', symbols: ['Run'] }] },
    },
  ],
};

const product = (version = '') => ({
  '@id': `pkg:apk/wolfi/git${version}?arch=x86_64`,
  subcomponents: [{ '@id': 'pkg:golang/golang.org/x/crypto@v0.1.0' }],
});

export const openVex = {
  '@context': 'https://openvex.dev/ns/v0.2.0',
  '@id': 'https://example.com/vex/1',
  author: 'Example Security Team',
  timestamp: '2024-05-01T00:00:00Z',
  version: 1,
  statements: [
    { vulnerability: { name: 'CVE-2024-3333' }, products: [product()], status: 'under_investigation' },
    {
      vulnerability: { name: 'CVE-2024-3333' },
      timestamp: '2024-05-02T00:00:00Z',
      products: [product('@2.45.0-r1')],
      status: 'fixed',
    },
    {
      vulnerability: { name: 'CVE-2024-4444', aliases: ['GHSA-dddd-eeee-ffff'] },
      products: [product(), { '@id': 'pkg:oci/image' }],
      status: 'not_affected',
      justification: 'vulnerable_code_not_in_execute_path',
      impact_statement: 'Nothing calls it.',
    },
    {
      vulnerability: { name: 'CVE-2024-5555' },
      products: [{ identifiers: { purl: 'pkg:pypi/django@4.2' } }],
      status: 'affected',
      action_statement: 'Upgrade to 4.3.',
    },
  ],
};
