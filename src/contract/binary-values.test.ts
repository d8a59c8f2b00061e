import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type DescMessage, fromBinary, type Message, mergeFromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { binaryParts, hasMoreBinaryValues } from './binary-values.ts';
import { methods } from './contract.testing.ts';
import { IdentitySchema } from './gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleSchema } from './gen/chainguard/platform/iam/v2/roles_pb.js';
import { AdvisorySchema } from './gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { ImportAdvisoriesRequestSchema } from './gen/wharfinger/imports/v1/advisories_pb.js';
import { arbitraryMessage } from './json/arbitrary-message.testing.ts';

const inputs = [...new Set(methods.map(({ desc }) => desc.input))];
const arbitraryInput = fc
  .constantFrom(...inputs)
  .chain((desc) => arbitraryMessage(desc).map((message) => ({ desc, message })));

/** The smallest limit that a message does not exceed. */
function countOf(desc: DescMessage, message: Message): number {
  const bytes = toBinary(desc, message);
  let max = 0;
  while (hasMoreBinaryValues(desc, bytes, max)) max++;
  return max;
}

test('fields, list items and map entries are counted', () => {
  assert.equal(countOf(RoleSchema, create(RoleSchema)), 0);
  assert.equal(countOf(RoleSchema, create(RoleSchema, { name: 'a', description: 'b' })), 2);
  // The field of a packed list counts too.
  assert.equal(countOf(RoleSchema, create(RoleSchema, { capabilities: [1, 2, 300] as never })), 4);
  const claims = { a: '1', b: '2', c: '3' };
  const identity = create(IdentitySchema, { relationship: { case: 'claimMatch', value: { claims } } });
  assert.equal(countOf(IdentitySchema, identity), 4);
  const advisory = { aliases: ['a', 'b'], events: [{ author: 'a' }, {}] };
  assert.equal(countOf(AdvisorySchema, create(AdvisorySchema, advisory)), 5);
  const request = create(ImportAdvisoriesRequestSchema, { parent: 'p', advisories: [advisory, advisory] });
  assert.equal(countOf(ImportAdvisoriesRequestSchema, request), 13);
});

test('the parts of a message give the whole when they are merged', () => {
  fc.assert(
    fc.property(arbitraryInput, fc.integer({ min: 1, max: 64 }), ({ desc, message }, size) => {
      const bytes = toBinary(desc, message);
      const merged = create(desc);
      for (const part of binaryParts(bytes, size)) mergeFromBinary(desc, merged, part);
      assert.deepEqual(merged, fromBinary(desc, bytes));
    }),
    { seed: 14 },
  );
});

test('bytes that are not a message end the reading, and no byte is lost', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...inputs), (bytes, desc) => {
      hasMoreBinaryValues(desc, bytes, 3);
      assert.deepEqual(Buffer.concat([...binaryParts(bytes, 8)]), Buffer.from(bytes));
    }),
    { seed: 14 },
  );
});
