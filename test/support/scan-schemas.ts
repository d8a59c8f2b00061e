/**
 * The parts of the public schemas of Grype (schema of its JSON presenter) and Trivy (report schema 2) that the server
 * relies on. A property is required here if the scanner always writes it.
 */
const text = { type: 'string' } as const;
const texts = { type: ['array', 'null'], items: text } as const;
const digest = { type: 'string', pattern: '^sha256:[0-9a-f]+$' } as const;
const time = { type: 'string', format: 'date-time' } as const;

const object = (properties: Record<string, unknown>, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
});
const listOf = (items: unknown) => ({ type: 'array', items });

const grypeCvss = object(
  {
    source: text,
    type: text,
    version: { enum: ['2.0', '3.0', '3.1', '4.0'] },
    vector: text,
    metrics: object({ baseScore: { type: 'number', minimum: 0, maximum: 10 } }, ['baseScore']),
  },
  ['version', 'vector', 'metrics'],
);

const grypeMetadata = {
  id: text,
  dataSource: text,
  namespace: text,
  severity: { enum: ['Unknown', 'Negligible', 'Low', 'Medium', 'High', 'Critical'] },
  urls: texts,
  description: text,
  cvss: listOf(grypeCvss),
};

export const grypeSchema = object(
  {
    matches: listOf(
      object(
        {
          vulnerability: object(
            {
              ...grypeMetadata,
              fix: object({ versions: texts, state: { enum: ['fixed', 'not-fixed', 'wont-fix', 'unknown'] } }, [
                'versions',
                'state',
              ]),
              advisories: { type: 'array' },
            },
            ['id', 'dataSource', 'severity', 'urls', 'cvss', 'fix', 'advisories'],
          ),
          relatedVulnerabilities: listOf(object(grypeMetadata, ['id', 'dataSource', 'urls', 'cvss'])),
          matchDetails: listOf(object({ type: text, matcher: text }, ['type', 'matcher', 'searchedBy', 'found'])),
          artifact: object(
            { name: text, version: text, type: text, purl: text, locations: listOf(object({ path: text }, ['path'])) },
            ['id', 'name', 'version', 'type', 'locations', 'language', 'licenses', 'cpes', 'purl', 'upstreams'],
          ),
        },
        ['vulnerability', 'relatedVulnerabilities', 'matchDetails', 'artifact'],
      ),
    ),
    source: object({ type: text, target: object({ manifestDigest: digest, repoDigests: listOf(text) }) }, [
      'type',
      'target',
    ]),
    distro: object({ name: text, version: text }, ['name', 'version', 'idLike']),
    descriptor: object({ name: { const: 'grype' }, version: text, timestamp: time }, ['name', 'version']),
  },
  ['matches', 'distro', 'descriptor'],
);

const rating = object({
  V2Vector: text,
  V3Vector: text,
  V40Vector: text,
  V2Score: { type: 'number' },
  V3Score: { type: 'number' },
  V40Score: { type: 'number' },
});

const STATUSES = [
  ...['unknown', 'not_affected', 'affected', 'fixed'],
  ...['under_investigation', 'will_not_fix', 'fix_deferred', 'end_of_life'],
];

export const trivySchema = object(
  {
    SchemaVersion: { const: 2 },
    CreatedAt: time,
    ArtifactName: text,
    ArtifactType: text,
    Metadata: object({ ImageID: digest, RepoDigests: texts }),
    Results: listOf(
      object(
        {
          Target: text,
          Class: text,
          Type: text,
          Vulnerabilities: listOf(
            object(
              {
                VulnerabilityID: text,
                VendorIDs: texts,
                PkgName: text,
                PkgIdentifier: object({ PURL: text }),
                InstalledVersion: text,
                FixedVersion: text,
                Status: { enum: STATUSES },
                Severity: { enum: ['UNKNOWN', 'LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] },
                CVSS: { type: 'object', additionalProperties: rating },
                References: texts,
              },
              ['VulnerabilityID', 'PkgName', 'InstalledVersion', 'Severity'],
            ),
          ),
        },
        ['Target'],
      ),
    ),
  },
  ['SchemaVersion', 'ArtifactName', 'ArtifactType'],
);
