import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { advisoryYaml, openVex, pypiOsv, withdrawnOsv } from '../../../test/support/advisory-samples.ts';
import { damagedText } from '../../../test/support/damaged-text.ts';
import { isAdvisoryId } from './advisory-id.ts';
import { checkAdvisory } from './advisory-json.ts';
import { type AdvisoryFormat, decodeAdvisories, decodeVulnerabilityMetadata } from './decode-advisories.ts';

const samples = [advisoryYaml, JSON.stringify(pypiOsv), JSON.stringify(withdrawnOsv, null, 2), JSON.stringify(openVex)];
const formats: readonly (AdvisoryFormat | undefined)[] = [undefined, 'yaml', 'osv', 'openvex'];

test('each record of a malformed file is decoded to a valid advisory or refused with a reason', () => {
  fc.assert(
    fc.property(fc.constantFrom(...samples).chain(damagedText), fc.constantFrom(...formats), (text, format) => {
      for (const decoded of decodeAdvisories(text, format)) {
        if ('reason' in decoded) assert.notEqual(decoded.reason, '');
        else {
          checkAdvisory(decoded.record, '');
          assert.ok(isAdvisoryId(decoded.record.advisoryId));
          assert.notEqual(decoded.record.artifactName, '');
        }
      }
      for (const decoded of decodeVulnerabilityMetadata(text)) {
        if ('reason' in decoded) assert.notEqual(decoded.reason, '');
        else assert.notEqual(decoded.record.id, '');
      }
    }),
    { seed: 5, numRuns: 1500 },
  );
});

test('a record with any value in any field is decoded or refused', () => {
  const json = fc.jsonValue({ maxDepth: 3 });
  const values = fc.oneof(json, fc.constantFrom('__proto__', 'constructor', '\ud800', '\u0000', 1e300, -0));
  fc.assert(
    fc.property(fc.constantFrom<object>(pypiOsv, withdrawnOsv, openVex), fc.nat(), values, (sample, seed, value) => {
      const text = JSON.stringify(replaceValue(sample, seed, value));
      for (const decoded of decodeAdvisories(text)) if ('record' in decoded) checkAdvisory(decoded.record, '');
      decodeVulnerabilityMetadata(text);
    }),
    { seed: 5, numRuns: 1500 },
  );
});

/** Replaces one value in the sample. */
function replaceValue(sample: object, seed: number, value: unknown): unknown {
  let count = 0;
  JSON.stringify(sample, (_, one) => {
    count++;
    return one;
  });
  let remaining = seed % count;
  return JSON.parse(JSON.stringify(sample, (_, one) => (remaining-- === 0 ? (value ?? null) : one)));
}
