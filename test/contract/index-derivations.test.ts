import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resources } from '../../src/domains/domains.ts';
import { hashesOf, readRecorded } from './index-derivations.ts';

const RECORD = 'then run: node test/contract/index-derivations.ts';

for (const resource of resources) {
  test(`the listing index of ${resource.kind} is derived as recorded`, () => {
    const recorded = readRecorded()[resource.kind];
    assert.ok(recorded, `the declaration of ${resource.kind} is new: check it, ${RECORD}`);
    const hashes = hashesOf(resource, recorded.samples);
    for (const [name, hash] of Object.entries(hashes)) {
      const known: string | undefined = recorded.hashes[name];
      assert.ok(
        known,
        `${resource.kind} declares ${name}, which is new: existing servers build it at their start; ${RECORD}`,
      );
      assert.equal(
        hash,
        known,
        `the function of ${name} of ${resource.kind} returns other values for the same resource than before, so existing ` +
          `indexes would be wrong: raise its number in indexVersions (src/resource/definition.ts), ${RECORD}`,
      );
    }
  });
}
