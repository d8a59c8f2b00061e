import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeAdvisories } from './advisories.ts';
import type { AdvisoryJson } from './advisory.ts';
import { encodeAdvisoryYaml } from './advisory-yaml/encode.ts';
import { arbitraryAdvisory } from './arbitrary-advisory.testing.ts';
import { encodeOpenVex } from './openvex/encode.ts';
import { encodeOsv } from './osv/encode.ts';

const formats: Readonly<Record<string, (advisories: readonly AdvisoryJson[], name: string) => string>> = {
  'advisory YAML': (advisories, name) => encodeAdvisoryYaml(name, advisories),
  OSV: (advisories) => JSON.stringify(advisories.map(encodeOsv)),
  OpenVEX: (advisories, name) => JSON.stringify(encodeOpenVex(name, advisories)),
};

/** All of one package, as a file has them. */
const packages = fc
  .tuple(fc.uniqueArray(arbitraryAdvisory, { minLength: 1, maxLength: 3, selector: ({ advisoryId }) => advisoryId }))
  .map(([advisories]) => {
    const artifactName = advisories[0]?.artifactName ?? '';
    return advisories.map((advisory) => ({ ...advisory, artifactName }));
  });

/** Looks like what an OSV record says, and is not. */
const odd: AdvisoryJson = {
  advisoryId: 'CGA-2222-2222-2222',
  artifactName: 'curl',
  events: [
    {
      createTime: '2024-01-01T00:00:00.000Z',
      findings: Buffer.from('[{"ranges":[{"type":"SEMVER","events":[]}]}]').toString('base64'),
      detection: { manual: {} },
    },
  ],
};

for (const [name, encode] of Object.entries(formats)) {
  test(`${name}: what was written reads as it was`, () => {
    fc.assert(
      fc.property(packages, (advisories) => {
        const stored = advisories.map((advisory) => ({
          ...advisory,
          uid: 'u',
          updateTime: '2024-01-01T00:00:00.000Z',
        }));
        const read = decodeAdvisories(encode(stored, advisories[0]?.artifactName ?? ''));
        const expected = advisories.map((record) => ({ id: record.advisoryId, record }));
        assert.deepEqual(read, expected);
      }),
      { seed: 5, numRuns: 200, examples: [[[odd]]] },
    );
  });
}
