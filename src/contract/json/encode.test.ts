import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { create, equals, fromJson } from '@bufbuild/protobuf';
import { AnySchema, EmptySchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { methods } from '../contract.testing.ts';
import { AccountAssociationSchema } from '../gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { GroupInviteSchema } from '../gen/chainguard/platform/iam/v2/group_invites_pb.js';
import {
  GroupSchema,
  ListGroupsResponseSchema,
  UpdateGroupRequestSchema,
} from '../gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleSchema } from '../gen/chainguard/platform/iam/v2/roles_pb.js';
import { ListArtifactsResponseSchema } from '../gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { SizeSchema } from '../gen/chainguard/platform/registry/v2/images_pb.js';
import { ListReposRequestSchema, RepoSchema } from '../gen/chainguard/platform/registry/v2/repos_pb.js';
import {
  AdvisoryEventSchema,
  ListAdvisoriesRequestSchema,
} from '../gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { GroupListSchema, GroupSchema as V1GroupSchema } from '../gen/platform/iam/v1/group.platform_pb.js';
import { AdvisoriesListSchema } from '../gen/platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js';
import { arbitraryMessage } from './arbitrary-message.testing.ts';
import { encodeJson } from './encode.ts';

const encode = <Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): unknown =>
  JSON.parse(encodeJson(desc, create(desc, init)));

test('numbers and booleans are always present; empty strings, lists, maps, enums and messages are omitted', () => {
  assert.deepEqual(encode(GroupSchema, {}), { verified: false });
  assert.deepEqual(encode(SizeSchema, {}), { size: '0' });
  assert.deepEqual(encode(RepoSchema, {}), {});
  assert.deepEqual(encode(AdvisoryEventSchema, {}), {});
});

test('a full resource in camelCase, with explicit JSON names', () => {
  const repo = create(RepoSchema, {
    uid: 'a/b',
    name: 'say "ü"\n',
    catalogTier: 2,
    bundles: ['base', ''],
    syncConfig: { source: 'c' },
    customOverlay: { environment: { B: '2', A: '' }, accounts: { users: [{ username: 'u', uid: 7 }] } },
    createTime: { seconds: 1_767_268_800n, nanos: 123_999_999 },
    updateTime: { seconds: -1n, nanos: 0 },
  });
  assert.equal(
    encodeJson(RepoSchema, repo),
    '{"uid":"a/b","name":"say \\"ü\\"\\n","catalogTier":"CATALOG_TIER_BASE","bundles":["base",""],' +
      '"sync_config":{"source":"c","uniqueTags":false,"gracePeriod":false},' +
      '"customOverlay":{"environment":{"B":"2","A":""},"accounts":{"users":[{"username":"u","uid":7,"gid":0}]}},' +
      '"createTime":"2026-01-01T12:00:00.123Z","updateTime":"1969-12-31T23:59:59.000Z"}',
  );
});

test('the items of a page are present even when empty, and total counts are strings', () => {
  assert.deepEqual(encode(ListGroupsResponseSchema, {}), { groups: [], skipped: 0 });
  assert.deepEqual(encode(ListGroupsResponseSchema, { totalCount: 0n }), { groups: [], totalCount: '0', skipped: 0 });
  assert.deepEqual(encode(ListArtifactsResponseSchema, {}), { artifacts: [], totalCount: '0', skipped: 0 });
  assert.deepEqual(encode(ListGroupsResponseSchema, { groups: [{ name: 'a' }, {}], nextPageToken: 't', skipped: 3 }), {
    groups: [{ name: 'a', verified: false }, { verified: false }],
    nextPageToken: 't',
    skipped: 3,
  });
});

test('fields with presence are written when set, also to their default', () => {
  assert.deepEqual(encode(ListReposRequestSchema, { name: '' }), { name: '', pageSize: 0, skip: 0 });
  assert.deepEqual(encode(ListAdvisoriesRequestSchema, { latestEventType: 0 }), {
    latestEventType: 'EVENT_TYPE_FILTER_UNSPECIFIED',
    pageSize: 0,
    skip: 0,
  });
});

test('the field of a oneof that is set is written', () => {
  assert.deepEqual(
    encode(IdentitySchema, {
      relationship: { case: 'claimMatch', value: { iss: { case: 'issuer', value: '' }, claims: { a: 'b' } } },
    }),
    { claimMatch: { issuer: '', claims: { a: 'b' } } },
  );
  assert.deepEqual(
    encode(AdvisoryEventSchema, { type: { case: 'detection', value: { type: { case: 'manual', value: {} } } } }),
    {
      detection: { manual: {} },
    },
  );
});

test('64-bit integers, integer map keys and bytes', () => {
  assert.deepEqual(
    encode(AccountAssociationSchema, {
      github: { appInstallations: { '12': { installations: [{ installationId: 2n ** 62n }] } } },
    }),
    { github: { appInstallations: { '12': { installations: [{ installationId: '4611686018427387904' }] } } } },
  );
  assert.deepEqual(encode(AdvisoryEventSchema, { findings: new Uint8Array([0xfb, 0xff]) }), { findings: '+/8=' });
});

test('enum values by name, also in lists; unknown ones by number', () => {
  assert.deepEqual(encode(RepoSchema, { catalogTier: 99 as never }), { catalogTier: 99 });
  assert.deepEqual(encode(RoleSchema, { capabilities: [0] }), { capabilities: ['UNKNOWN'] });
});

test('input-only fields are never written', () => {
  assert.deepEqual(encode(GroupInviteSchema, { roleUid: 'a', ttl: { seconds: 3600n } }), {
    roleUid: 'a',
    singleUse: false,
  });
});

test('field masks and empty messages', () => {
  assert.deepEqual(encode(UpdateGroupRequestSchema, { updateMask: { paths: ['name', 'resource_limits'] } }), {
    updateMask: 'name,resourceLimits',
  });
  assert.deepEqual(encode(EmptySchema, {}), {});
});

test('a string that is not valid Unicode is still written as valid JSON', () => {
  assert.equal(encodeJson(GroupSchema, create(GroupSchema, { name: '\ud800' })), '{"name":"\\ud800","verified":false}');
});

test('a type with a special JSON form that is not supported is refused', () => {
  assert.throws(() => encodeJson(AnySchema, create(AnySchema)), /google.protobuf.Any/);
});

const printed = <Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): unknown =>
  JSON.parse(encodeJson(desc, create(desc, init), 'v1'));

test('as grpc-gateway, v1 prints form fields, except those with presence', () => {
  assert.deepEqual(printed(GroupListSchema, {}), { items: [] });
  assert.deepEqual(printed(V1GroupSchema, {}), {
    id: '',
    name: '',
    description: '',
    resourceLimits: {},
    verified: false,
    kind: 'ORG_KIND_UNSPECIFIED',
    status: 'ORG_STATUS_UNSPECIFIED',
  });
  // `optional` fields and those of a oneof are omitted, also if they are messages.
  assert.deepEqual(printed(AdvisoriesListSchema, { items: [{ events: [{}] }] }), {
    id: '',
    items: [
      {
        id: '',
        artifactType: '',
        artifactName: '',
        artifactArchitecture: '',
        createdAt: null,
        updatedAt: null,
        aliases: [],
        events: [{ id: '', timestamp: null, findings: '', author: '', reviewer: '', status: 'UNKNOWN' }],
        advisoryId: '',
        author: '',
      },
    ],
    nextPageToken: '',
  });
});

test('clients decode what v1 prints to the same message', () => {
  const outputs = [...new Set(methods.filter(({ isV1 }) => isV1).map(({ desc }) => desc.output))];
  const message = fc.constantFrom(...outputs).chain((desc) => arbitraryMessage(desc).map((value) => ({ desc, value })));
  fc.assert(
    fc.property(message, ({ desc, value }) => {
      const json = encodeJson(desc, value, 'v1');
      assert.ok(equals(desc, fromJson(desc, JSON.parse(json)), value), json);
    }),
    { seed: 16, numRuns: 300 },
  );
});
