import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { AdvisoryJson } from './advisory-json.ts';
import { arbitraryAdvisory } from './arbitrary-advisory.testing.ts';
import { decodeAdvisories } from './decode-advisories.ts';
import { encodeOpenVex } from './openvex/encode.ts';
import { encodeOsv } from './osv/encode.ts';
import { encodeAdvisoryYaml } from './yaml/encode.ts';

const formats: Readonly<Record<string, (advisories: readonly AdvisoryJson[], name: string) => string>> = {
  'advisory YAML': (advisories, name) => encodeAdvisoryYaml(name, advisories),
  OSV: (advisories) => JSON.stringify(advisories.map(encodeOsv)),
  OpenVEX: (advisories, name) => JSON.stringify(encodeOpenVex(name, advisories)),
};

/** Advisories of one package, as they are in one file. */
const packages = fc
  .tuple(fc.uniqueArray(arbitraryAdvisory, { minLength: 1, maxLength: 3, selector: ({ advisoryId }) => advisoryId }))
  .map(([advisories]) => {
    const artifactName = advisories[0]?.artifactName ?? '';
    return advisories.map((advisory) => ({ ...advisory, artifactName }));
  });

/** Its findings look like an OSV record, but are not a valid one. */
const invalidOsvFindings: AdvisoryJson = {
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
  test(`${name}: decoding an encoded advisory restores it`, () => {
    fc.assert(
      fc.property(packages, (advisories) => {
        const stored = advisories.map((advisory) => ({
          ...advisory,
          uid: 'u',
          updateTime: '2024-01-01T00:00:00.000Z',
        }));
        const decoded = decodeAdvisories(encode(stored, advisories[0]?.artifactName ?? ''));
        const expected = advisories.map((record) => ({ id: record.advisoryId, record }));
        assert.deepEqual(decoded, expected);
      }),
      { seed: 5, numRuns: 200, examples: [[[invalidOsvFindings]]] },
    );
  });
}
