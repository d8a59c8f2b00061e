import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { advisoryYaml, openVex, pypiOsv, withdrawnOsv } from '../../test/support/advisory-samples.ts';
import { damagedText } from '../../test/support/damage.ts';
import { type AdvisoryFormat, decodeAdvisories, decodeVulnerabilities } from './advisories.ts';
import { checkAdvisory } from './advisory.ts';
import { isAdvisoryId } from './advisory-id.ts';

const samples = [advisoryYaml, JSON.stringify(pypiOsv), JSON.stringify(withdrawnOsv, null, 2), JSON.stringify(openVex)];
const formats: readonly (AdvisoryFormat | undefined)[] = [undefined, 'yaml', 'osv', 'openvex'];

test('of a damaged file each record is taken as the contract wants it, or refused with a reason', () => {
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
      for (const decoded of decodeVulnerabilities(text)) {
        if ('reason' in decoded) assert.notEqual(decoded.reason, '');
        else assert.notEqual(decoded.record.id, '');
      }
    }),
    { seed: 5, numRuns: 1500 },
  );
});

test('any value at any place of a record is taken or refused', () => {
  const json = fc.jsonValue({ maxDepth: 3 });
  const values = fc.oneof(json, fc.constantFrom('__proto__', 'constructor', '\ud800', '\u0000', 1e300, -0));
  fc.assert(
    fc.property(fc.constantFrom<object>(pypiOsv, withdrawnOsv, openVex), fc.nat(), values, (sample, seed, value) => {
      const text = JSON.stringify(replaced(sample, seed, value));
      for (const decoded of decodeAdvisories(text)) if ('record' in decoded) checkAdvisory(decoded.record, '');
      decodeVulnerabilities(text);
    }),
    { seed: 5, numRuns: 1500 },
  );
});

/** The sample with another value at one of its places. */
function replaced(sample: object, seed: number, value: unknown): unknown {
  let places = 0;
  JSON.stringify(sample, (_, one) => {
    places++;
    return one;
  });
  let left = seed % places;
  return JSON.parse(JSON.stringify(sample, (_, one) => (left-- === 0 ? (value ?? null) : one)));
}
