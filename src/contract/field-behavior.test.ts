import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isImmutable, isInputOnly, isOutputOnly, isRequired } from './field-behavior.ts';
import { GroupInviteSchema } from './gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { IdentityProvider_OIDCSchema } from './gen/chainguard/platform/iam/v2/identity_providers_pb.js';

test('field behaviours are read from the contract', () => {
  const { uid, roleUid, ttl, email } = GroupInviteSchema.field;
  assert.deepEqual(
    [isOutputOnly(uid), isRequired(uid), isInputOnly(uid), isImmutable(uid)],
    [true, false, false, false],
  );
  assert.deepEqual([isRequired(roleUid), isOutputOnly(roleUid)], [true, false]);
  assert.deepEqual([isRequired(ttl), isInputOnly(ttl)], [true, true]);
  assert.deepEqual([isRequired(email), isInputOnly(email)], [false, false]);
  assert.equal(isImmutable(IdentityProvider_OIDCSchema.field.correlationRule), true);
});
