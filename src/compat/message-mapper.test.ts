import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AccountAssociationSchema } from '../contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { GroupSchema } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { AccountAssociationsSchema } from '../contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import { OrgKind, GroupSchema as V1GroupSchema } from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import { IdentitySchema as V1IdentitySchema } from '../contract/gen/platform/iam/v1/identity.platform_pb.js';
import { createMessageMapper } from './message-mapper.ts';

const groups = createMessageMapper(V1GroupSchema, GroupSchema, {
  renames: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const identities = createMessageMapper(V1IdentitySchema, IdentitySchema, {
  renames: {
    id: 'uid',
    created_at: 'create_time',
    updated_at: 'update_time',
    last_seen: 'last_seen_time',
    static: 'static_keys',
    expiration: 'expiration_time',
  },
  onlyV2: ['email', 'email_unverified', 'company'],
});

test('fields are renamed, also maps and enums', () => {
  const group = create(V1GroupSchema, { id: 'a', name: 'b', resourceLimits: { repos: 3 }, kind: OrgKind.DEV });
  const renamed = create(GroupSchema, { uid: 'a', name: 'b', resourceLimits: { repos: 3 }, kind: 3 });
  assert.deepEqual(groups.toV2(group), renamed);
  assert.deepEqual(groups.toV1(renamed), group);
});

test('absent messages and fields stay absent', () => {
  assert.equal(groups.toV2(undefined), undefined);
  assert.equal(identities.toV2(create(V1IdentitySchema)).createTime, undefined);
  assert.equal(identities.toV1(create(IdentitySchema)).relationship.case, undefined);
});

test('fields are renamed at every depth, also in a oneof', () => {
  const expiration = timestampFromMs(1000);
  const v1 = create(V1IdentitySchema, {
    relationship: { case: 'static', value: { issuer: 'https://x', expiration, audiences: ['a'] } },
  });
  const v2 = create(IdentitySchema, {
    relationship: { case: 'staticKeys', value: { issuer: 'https://x', expirationTime: expiration, audiences: ['a'] } },
  });
  assert.deepEqual(identities.toV2(v1), v2);
  assert.deepEqual(identities.toV1(v2), v1);
});

test('messages in maps and lists are translated', () => {
  const associations = createMessageMapper(AccountAssociationsSchema, AccountAssociationSchema, {
    renames: { group: 'uid' },
    onlyV2: ['create_time', 'update_time'],
  });
  const github = { appInstallations: { '17': { installations: [{ installationId: 4n, name: 'x' }] } } };
  assert.deepEqual(
    associations.toV2(create(AccountAssociationsSchema, { group: 'a', github })),
    create(AccountAssociationSchema, { uid: 'a', github }),
  );
});

test('the full update mask has all fields of v1', () => {
  assert.deepEqual(groups.fullUpdateMask.paths, [
    'uid',
    'name',
    'description',
    'resource_limits',
    'verified',
    'kind',
    'status',
  ]);
});

test('a field without a counterpart is an error', () => {
  assert.throws(() => createMessageMapper(V1GroupSchema, GroupSchema), {
    message: 'compat: chainguard.platform.iam.v2.Group has no counterpart of chainguard.platform.iam.Group.id',
  });
  assert.throws(() => createMessageMapper(V1GroupSchema, GroupSchema, { renames: { id: 'uid' } }), {
    message: 'compat: chainguard.platform.iam.Group has no counterpart of chainguard.platform.iam.v2.Group.create_time',
  });
  // The types must be the same too.
  assert.throws(
    () => createMessageMapper(V1GroupSchema, GroupSchema, { renames: { id: 'uid', verified: 'create_time' } }),
    {
      message: 'compat: chainguard.platform.iam.v2.Group has no counterpart of chainguard.platform.iam.Group.verified',
    },
  );
});
