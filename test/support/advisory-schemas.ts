/** The parts of the public schemas of OSV (1.7) and OpenVEX (0.2.0) that the server reads and writes. */

const text = { type: 'string', minLength: 1 } as const;
const time = { type: 'string', format: 'date-time', pattern: 'Z$' } as const;
const texts = { type: 'array', items: text, uniqueItems: true } as const;

const vector = (type: string, pattern: string) => ({
  properties: { type: { const: type }, score: { type: 'string', pattern } },
});

const severity = {
  type: 'array',
  items: {
    type: 'object',
    required: ['type', 'score'],
    additionalProperties: false,
    properties: { type: text, score: text },
    oneOf: [
      vector('CVSS_V2', '^AV:[NAL]/AC:[LMH]/Au:[NSM]/'),
      vector('CVSS_V3', '^CVSS:3[.][01]/AV:'),
      vector('CVSS_V4', '^CVSS:4[.]0/AV:'),
      vector('Ubuntu', '^(?:negligible|low|medium|high|critical)$'),
    ],
  },
} as const;

/** The ecosystems that OSV defines. Some are followed by a colon and a release. */
const ecosystem = {
  type: 'string',
  pattern:
    '^(?:AlmaLinux|Alpine|Chainguard|crates[.]io|Debian|GitHub Actions|Go|Hex|Maven|Mageia|npm|NuGet|openEuler|openSUSE|Packagist|Pub|PyPI|Red Hat|Rocky Linux|RubyGems|SUSE|SwiftURL|Ubuntu|Wolfi)(?::.+)?$',
} as const;

const limits = ['introduced', 'fixed', 'last_affected', 'limit'] as const;

const range = {
  type: 'object',
  required: ['type', 'events'],
  additionalProperties: false,
  properties: {
    type: { enum: ['GIT', 'SEMVER', 'ECOSYSTEM'] },
    repo: text,
    events: {
      type: 'array',
      minItems: 1,
      contains: { type: 'object', required: ['introduced'] },
      items: {
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(limits.map((name) => [name, text])),
        oneOf: limits.map((name) => ({ required: [name] })),
      },
    },
    database_specific: { type: 'object' },
  },
} as const;

export const osvSchema = {
  type: 'object',
  required: ['id', 'modified'],
  additionalProperties: false,
  properties: {
    schema_version: { type: 'string', pattern: '^1[.][0-9]+[.][0-9]+$' },
    id: { type: 'string', pattern: '^[A-Za-z]+-.+' },
    modified: time,
    published: time,
    withdrawn: time,
    aliases: texts,
    related: texts,
    upstream: texts,
    summary: text,
    details: text,
    severity,
    affected: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        properties: {
          package: {
            type: 'object',
            required: ['ecosystem', 'name'],
            additionalProperties: false,
            properties: { ecosystem, name: text, purl: { type: 'string', pattern: '^pkg:' } },
          },
          severity,
          ranges: { type: 'array', items: range },
          versions: { type: 'array', items: text },
          ecosystem_specific: { type: 'object' },
          database_specific: { type: 'object' },
        },
      },
    },
    references: {
      type: 'array',
      items: {
        type: 'object',
        required: ['type', 'url'],
        additionalProperties: false,
        properties: { type: text, url: { type: 'string', format: 'uri' } },
      },
    },
    credits: { type: 'array', items: { type: 'object', required: ['name'] } },
    database_specific: { type: 'object' },
  },
} as const;

const component = {
  '@id': { type: 'string', format: 'uri' },
  identifiers: {
    type: 'object',
    additionalProperties: false,
    minProperties: 1,
    properties: { purl: text, cpe22: text, cpe23: text },
  },
  hashes: { type: 'object' },
} as const;
const named = [{ required: ['@id'] }, { required: ['identifiers'] }];

export const openVexSchema = {
  type: 'object',
  required: ['@context', '@id', 'author', 'timestamp', 'version', 'statements'],
  additionalProperties: false,
  properties: {
    '@context': { type: 'string', pattern: '^https://openvex[.]dev/ns/v0[.]2[.]0$' },
    '@id': { type: 'string', format: 'uri' },
    author: text,
    role: text,
    timestamp: { type: 'string', format: 'date-time' },
    last_updated: { type: 'string', format: 'date-time' },
    version: { type: 'integer', minimum: 1 },
    tooling: text,
    statements: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['vulnerability', 'products', 'status'],
        additionalProperties: false,
        properties: {
          '@id': { type: 'string', format: 'uri' },
          version: { type: 'integer', minimum: 1 },
          vulnerability: {
            type: 'object',
            required: ['name'],
            additionalProperties: false,
            properties: { '@id': { type: 'string', format: 'uri' }, name: text, description: text, aliases: texts },
          },
          timestamp: { type: 'string', format: 'date-time' },
          last_updated: { type: 'string', format: 'date-time' },
          products: {
            type: 'array',
            minItems: 1,
            items: {
              type: 'object',
              additionalProperties: false,
              anyOf: named,
              properties: {
                ...component,
                subcomponents: {
                  type: 'array',
                  items: { type: 'object', additionalProperties: false, anyOf: named, properties: component },
                },
              },
            },
          },
          status: { enum: ['not_affected', 'affected', 'fixed', 'under_investigation'] },
          status_notes: { type: 'string' },
          justification: {
            enum: [
              'component_not_present',
              'vulnerable_code_not_present',
              'vulnerable_code_not_in_execute_path',
              'vulnerable_code_cannot_be_controlled_by_adversary',
              'inline_mitigations_already_exist',
            ],
          },
          impact_statement: { type: 'string' },
          action_statement: { type: 'string' },
          action_statement_timestamp: { type: 'string', format: 'date-time' },
        },
        // Some statuses require an explanation.
        allOf: [
          {
            if: { properties: { status: { const: 'not_affected' } } },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: { anyOf: [{ required: ['justification'] }, { required: ['impact_statement'] }] },
          },
          {
            if: { properties: { status: { const: 'affected' } } },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: { required: ['action_statement'] },
          },
        ],
      },
    },
  },
} as const;
