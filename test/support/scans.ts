/** Reports as Grype and Trivy write them, with all fields that the server reads and some that it ignores. */

export interface SampleFinding {
  readonly id: string;
  readonly severity?: string;
  readonly aliases?: readonly string[];
  readonly pkg?: string;
  readonly version?: string;
  readonly fixed?: string;
  readonly vector?: string;
  readonly score?: number;
}

export interface SampleScan {
  readonly findings: readonly SampleFinding[];
  /** RFC 3339. */
  readonly time?: string | undefined;
  readonly digest?: string;
}

const VECTOR = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H';

/** A report as `grype -o json` writes it. */
export const grypeReport = ({ findings, time = '2026-08-01T12:00:00.123456789Z', digest }: SampleScan) => ({
  matches: findings.map((finding) => ({
    vulnerability: {
      id: finding.id,
      dataSource: `https://example.org/${finding.id}`,
      namespace: 'debian:distro:debian:12',
      severity: finding.severity ?? 'High',
      urls: [`https://example.org/${finding.id}`, 'https://example.org/more'],
      description: `What is wrong with ${finding.pkg ?? 'openssl'}.`,
      cvss: [
        {
          source: 'nvd@nist.gov',
          type: 'Primary',
          version: '3.1',
          vector: finding.vector ?? VECTOR,
          metrics: { baseScore: finding.score ?? 7.5, exploitabilityScore: 3.9, impactScore: 3.6 },
          vendorMetadata: {},
        },
      ],
      fix: finding.fixed ? { versions: [finding.fixed], state: 'fixed' } : { versions: [], state: 'wont-fix' },
      advisories: [],
    },
    relatedVulnerabilities: (finding.aliases ?? []).map((id) => ({
      id,
      dataSource: `https://nvd.example.org/${id}`,
      namespace: 'nvd:cpe',
      severity: 'High',
      urls: [],
      description: 'The same elsewhere.',
      cvss: [],
    })),
    matchDetails: [{ type: 'exact-direct-match', matcher: 'dpkg-matcher', searchedBy: {}, found: {} }],
    artifact: {
      id: 'c1b0a2',
      name: finding.pkg ?? 'openssl',
      version: finding.version ?? '3.0.1-1',
      type: 'deb',
      locations: [{ path: '/var/lib/dpkg/status', layerID: 'sha256:00' }],
      language: '',
      licenses: ['Apache-2.0'],
      cpes: [],
      purl: `pkg:deb/debian/${finding.pkg ?? 'openssl'}@${finding.version ?? '3.0.1-1'}`,
      upstreams: [],
    },
  })),
  source: {
    type: 'image',
    target: {
      userInput: 'registry.test/app:latest',
      imageID: `sha256:${'1'.repeat(64)}`,
      manifestDigest: `sha256:${'2'.repeat(64)}`,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      tags: ['registry.test/app:latest'],
      imageSize: 1234,
      layers: [],
      repoDigests: digest ? [`registry.test/app@${digest}`] : [],
      architecture: 'amd64',
      os: 'linux',
    },
  },
  distro: { name: 'debian', version: '12', idLike: [] },
  descriptor: {
    name: 'grype',
    version: '0.99.1',
    db: {
      status: { schemaVersion: 'v6.1.0', built: '2026-07-31T04:00:00Z', valid: true },
      providers: {},
    },
    ...(time !== undefined && { timestamp: time }),
  },
});

/** A report as `trivy image --format json` writes it. */
export const trivyReport = ({ findings, time = '2026-08-01T12:00:00.123456789+02:00', digest }: SampleScan) => ({
  SchemaVersion: 2,
  CreatedAt: time,
  ArtifactName: 'registry.test/app:latest',
  ArtifactType: 'container_image',
  Metadata: {
    OS: { Family: 'alpine', Name: '3.22' },
    ImageID: `sha256:${'1'.repeat(64)}`,
    DiffIDs: [`sha256:${'3'.repeat(64)}`],
    RepoTags: ['registry.test/app:latest'],
    ...(digest && { RepoDigests: [`registry.test/app@${digest}`] }),
  },
  Results: [
    {
      Target: 'registry.test/app:latest (alpine 3.22)',
      Class: 'os-pkgs',
      Type: 'alpine',
      ...(findings.length > 0 && {
        Vulnerabilities: findings.map((finding) => ({
          VulnerabilityID: finding.id,
          ...(finding.aliases && { VendorIDs: finding.aliases }),
          PkgID: `${finding.pkg ?? 'openssl'}@${finding.version ?? '3.0.1-r0'}`,
          PkgName: finding.pkg ?? 'openssl',
          PkgIdentifier: { PURL: `pkg:apk/alpine/${finding.pkg ?? 'openssl'}@${finding.version ?? '3.0.1-r0'}` },
          InstalledVersion: finding.version ?? '3.0.1-r0',
          ...(finding.fixed && { FixedVersion: finding.fixed }),
          Status: finding.fixed ? 'fixed' : 'affected',
          Layer: { DiffID: `sha256:${'3'.repeat(64)}` },
          SeveritySource: 'nvd',
          PrimaryURL: `https://avd.example.org/${finding.id}`,
          DataSource: { ID: 'alpine', Name: 'Alpine Secdb', URL: 'https://secdb.example.org/' },
          Title: 'What is wrong',
          Description: `What is wrong with ${finding.pkg ?? 'openssl'}.`,
          Severity: finding.severity ?? 'HIGH',
          CweIDs: ['CWE-79'],
          CVSS: { nvd: { V3Vector: finding.vector ?? VECTOR, V3Score: finding.score ?? 7.5 } },
          References: ['https://example.org/more'],
          PublishedDate: '2026-01-01T00:00:00Z',
        })),
      }),
    },
  ],
});

export const asBytes = (report: unknown): Buffer => Buffer.from(JSON.stringify(report));
