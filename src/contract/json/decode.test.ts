import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMessage, Message, MessageInitShape } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { violationLines, violationsOf } from '../contract.testing.ts';
import { AccountAssociationSchema } from '../gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { GroupInviteSchema } from '../gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupSchema, UpdateGroupRequestSchema } from '../gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../gen/chainguard/platform/iam/v2/identities_pb.js';
import { BatchCreateRoleBindingsRequestSchema } from '../gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RepoSchema } from '../gen/chainguard/platform/registry/v2/repos_pb.js';
import { AdvisoryEventSchema } from '../gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { messageReader } from './decode.ts';
import { collectViolations } from './violations.ts';

function decode(desc: DescMessage, text: string): Message | undefined {
  const problems = collectViolations();
  const message = messageReader(desc)(JSON.parse(text), '', problems);
  problems.check();
  return message;
}

const same = <Desc extends DescMessage>(desc: Desc, text: string, init: MessageInitShape<Desc>) =>
  assert.deepEqual(decode(desc, text), create(desc, init));

test('accepts camelCase, snake_case and explicit JSON names', () => {
  const init = { name: 'a', catalogTier: 2, activeTags: ['b'], syncConfig: { source: 'c', uniqueTags: true } };
  same(
    RepoSchema,
    '{"name":"a","catalogTier":2,"activeTags":["b"],"syncConfig":{"source":"c","uniqueTags":true}}',
    init,
  );
  same(
    RepoSchema,
    '{"name":"a","catalog_tier":2,"active_tags":["b"],"sync_config":{"source":"c","unique_tags":true}}',
    init,
  );
});

test('null means absent', () => {
  same(RepoSchema, '{"name":null,"catalogTier":null,"bundles":null,"sync_config":null,"createTime":null}', {});
  same(IdentitySchema, '{"claimMatch":{"issuer":"a","issuerPattern":null}}', {
    relationship: { case: 'claimMatch', value: { iss: { case: 'issuer', value: 'a' } } },
  });
});

test('accepts maps with string and integer keys', () => {
  same(GroupSchema, '{"resourceLimits":{"repos":5,"":0}}', { resourceLimits: { repos: 5, '': 0 } });
  same(AccountAssociationSchema, '{"github":{"appInstallations":{"-7":{"installations":[{"installationId":"9"}]}}}}', {
    github: { appInstallations: { '-7': { installations: [{ installationId: 9n }] } } },
  });
});

test('accepts well-known types and bytes', () => {
  same(GroupInviteSchema, '{"ttl":"3.5s","createTime":"2026-01-01T01:00:00+01:00"}', {
    ttl: { seconds: 3n, nanos: 500_000_000 },
    createTime: timestampFromDate(new Date('2026-01-01T00:00:00Z')),
  });
  same(AdvisoryEventSchema, '{"findings":"-_8","detection":{"manual":{}}}', {
    findings: new Uint8Array([0xfb, 0xff]),
    type: { case: 'detection', value: { type: { case: 'manual', value: {} } } },
  });
  same(UpdateGroupRequestSchema, '{"updateMask":"name,resourceLimits"}', {
    updateMask: { paths: ['name', 'resource_limits'] },
  });
});

const refused: [DescMessage, string, string][] = [
  [GroupSchema, '[]', 'body: must be a JSON object'],
  [GroupSchema, '"a"', 'body: must be a JSON object'],
  [GroupSchema, '{"nmae":"a"}', 'nmae: is not one of the fields of Group: uid, name, description, '],
  [GroupSchema, '{"name":7}', 'name: must be a string of '],
  [GroupSchema, '{"name":["a"]}', 'name: must be a string of '],
  [GroupSchema, '{"name":"a\\u0000"}', 'name: must be a string of '],
  [GroupSchema, '{"name":"\\ud800"}', 'name: must be a string of '],
  [GroupSchema, '{"verified":"true"}', 'verified: must be true or false'],
  [GroupSchema, '{"kind":"ORG_KIND_NONE"}', 'kind: must be one of ORG_KIND_STARTER, '],
  [GroupSchema, '{"createTime":"yesterday"}', 'create_time: must be an RFC 3339 time'],
  [GroupSchema, '{"createTime":{"seconds":1}}', 'create_time: must be an RFC 3339 time'],
  [GroupSchema, '{"__proto__":{"name":"a"}}', '__proto__: is not one of the fields of '],
  [GroupSchema, '{"constructor":1}', 'constructor: is not one of the fields of '],
  [GroupSchema, '{"$typeName":"a"}', '$typeName: is not one of the fields of '],
  [GroupSchema, '{"resourceLimits":[]}', 'resource_limits: must be a JSON object'],
  [GroupSchema, '{"resourceLimits":{"repos":"many"}}', 'resource_limits["repos"]: must be a whole number from '],
  [GroupSchema, '{"resourceLimits":{"repos":null}}', 'resource_limits["repos"]: must be a whole number from '],
  [GroupSchema, '{"resourceLimits":{"repos":2147483648}}', 'resource_limits["repos"]: must be a whole number from '],
  [GroupSchema, '{"resourceLimits":{"__proto__":1}}', 'resource_limits["__proto__"]: the key must not be __proto__'],
  [
    GroupSchema,
    '{"resource_limits":{},"resourceLimits":{}}',
    'resource_limits: is given twice, as resource_limits and as resourceLimits',
  ],
  [
    GroupSchema,
    '{"resourceLimits":{},"resource_limits":{}}',
    'resource_limits: is given twice, as resource_limits and as resourceLimits',
  ],
  [GroupInviteSchema, '{"ttl":3600}', 'ttl: must be a number of seconds followed by s, '],
  [UpdateGroupRequestSchema, '{"updateMask":"a b"}', 'update_mask: must be field paths separated by commas, '],
  [UpdateGroupRequestSchema, '{"updateMask":{"paths":["name"]}}', 'update_mask: must be field paths '],
  [IdentitySchema, '{"claimMatch":[]}', 'claim_match: must be a JSON object'],
  [IdentitySchema, '{"claimMatch":{"issuer":7}}', 'claim_match.issuer: must be a string'],
  [IdentitySchema, '{"claimMatch":{"claims":{"a\\u0000":"b"}}}', 'claim_match.claims["a?"]: the key must be a string'],
  [
    IdentitySchema,
    '{"claimMatch":{"issuer":"a","issuerPattern":"b"}}',
    'claim_match.issuer_pattern: only one of issuer, issuer_pattern may be set',
  ],
  [
    IdentitySchema,
    '{"claimMatch":{},"staticKeys":{}}',
    'static_keys: only one of claim_match, static_keys, aws_identity, service_principal may be set',
  ],
  [
    AccountAssociationSchema,
    '{"github":{"appInstallations":{"07":{}}}}',
    'github.app_installations["07"]: the key must be a whole number',
  ],
  [RepoSchema, '{"bundles":"base"}', 'bundles: must be a JSON array'],
  [RepoSchema, '{"bundles":{"0":"base"}}', 'bundles: must be a JSON array'],
  [RepoSchema, '{"bundles":["base",null]}', 'bundles[1]: must be a string'],
  [
    BatchCreateRoleBindingsRequestSchema,
    '{"requests":[{},{},{},{"roleBinding":{"roleUid":1}}]}',
    'requests[3].role_binding.role_uid: must be a string',
  ],
  [AdvisoryEventSchema, '{"findings":"a"}', 'findings: must be base64'],
];
for (const [desc, text, expected] of refused) {
  test(`${desc.name} refuses ${text}`, () => {
    const found = violationLines(() => decode(desc, text));
    assert.equal(found.length, 1);
    assert.ok(found[0]?.startsWith(expected), found[0]);
  });
}

test('several violations are reported together, at most ten', () => {
  assert.deepEqual(
    violationsOf(() => decode(GroupSchema, '{"name":1,"description":2,"x":3}')).map(({ field }) => field),
    ['name', 'description', 'x'],
  );
  const many = JSON.stringify({ bundles: Array(100_000).fill(7) });
  assert.equal(violationsOf(() => decode(RepoSchema, many)).length, 10);
});

test('a long name is shortened and control characters are replaced in the error', () => {
  const [violation] = violationsOf(() =>
    decode(GroupSchema, JSON.stringify({ [`\n\ud800${'x'.repeat(1_000_000)}`]: 1 })),
  );
  assert.equal(violation?.field, `?\ufffd${'x'.repeat(98)}...`);
});

test('deep nesting does not overflow the stack', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  assert.deepEqual(violationLines(() => decode(GroupSchema, `{"name":${deep}}`)).length, 1);
});
