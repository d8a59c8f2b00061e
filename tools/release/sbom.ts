import type { NpmPackage } from './bundle.ts';
import type { DebianPackage } from './debian-packages.ts';
import type { Material } from './material.ts';
import type { NodeRuntime } from './node-runtime.ts';
import type { Platform } from './platforms.ts';
import type { Source } from './source.ts';

export interface SbomContents {
  readonly npm: readonly NpmPackage[];
  readonly node: NodeRuntime;
  readonly debian: readonly DebianPackage[];
}

interface SpdxPackage {
  readonly SPDXID: string;
  readonly [field: string]: unknown;
}

/** Returns the SBOM of an artifact (SPDX 2.3, JSON). `artifact` is a name such as `image-linux-amd64`. */
export function sbomOf(
  artifact: string,
  platform: Platform,
  { npm, node, debian }: SbomContents,
  source: Source,
): string {
  const main = spdxPackage('wharfinger', source.version, 'Apache-2.0', `pkg:npm/wharfinger@${source.version}`);
  const nodePurl = `pkg:generic/node@${node.version}?platform=${platform.name}`;
  const contained = [
    ...npm.map(({ name, version, licence, material }) =>
      spdxPackage(name, version, licence, material.uri, material.digest),
    ),
    spdxPackage('node', node.version, 'NOASSERTION', nodePurl, node.material.digest),
    ...debian.map(({ name, version, material }) =>
      spdxPackage(name, version, 'NOASSERTION', material.uri, material.digest),
    ),
  ];
  return `${JSON.stringify(
    {
      spdxVersion: 'SPDX-2.3',
      dataLicense: 'CC0-1.0',
      SPDXID: 'SPDXRef-DOCUMENT',
      name: `wharfinger-${source.version}-${artifact}`,
      documentNamespace: `https://wharfinger.dev/spdx/${source.version}/${source.commit}/${artifact}`,
      creationInfo: {
        created: source.time.toISOString().replace(/\.\d+Z$/, 'Z'),
        creators: [`Tool: wharfinger-release-${source.version}`],
      },
      packages: [main, ...contained],
      relationships: [
        relationship('SPDXRef-DOCUMENT', 'DESCRIBES', main),
        ...contained.map((part) => relationship(main.SPDXID, 'CONTAINS', part)),
      ],
    },
    null,
    1,
  )}\n`;
}

function spdxPackage(
  name: string,
  version: string,
  licence: string,
  purl: string,
  digest: Material['digest'] = {},
): SpdxPackage {
  return {
    SPDXID: `SPDXRef-${`${name}-${version}`.replace(/[^A-Za-z0-9.-]/g, '-')}`,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: licence,
    copyrightText: 'NOASSERTION',
    checksums: Object.entries(digest).map(([name, value]) => ({ algorithm: name.toUpperCase(), checksumValue: value })),
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  };
}

const relationship = (from: string, relationshipType: string, { SPDXID }: SpdxPackage) => ({
  spdxElementId: from,
  relationshipType,
  relatedSpdxElement: SPDXID,
});
