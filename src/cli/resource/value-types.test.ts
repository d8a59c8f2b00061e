import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescField } from '@bufbuild/protobuf';
import { ConfigError } from '../../config-values.ts';
import { GroupInviteSchema } from '../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupSchema } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  Identity_ClaimMatchSchema,
  Identity_StaticKeysSchema,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  BatchCreateRoleBindingsRequestSchema,
  ListRoleBindingsRequestSchema,
} from '../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RoleSchema } from '../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { valueType } from './value-types.ts';

const parse = (field: DescField, ...texts: string[]): unknown => {
  const type = valueType(field);
  return texts.reduce<unknown>((previous, text) => type.parse(text, previous as never), undefined);
};

const refuses = (field: DescField, text: string, message: RegExp): void => {
  assert.throws(
    () => parse(field, text),
    (error: Error) => error instanceof ConfigError && message.test(error.message),
  );
};

test('text and numbers are sent as they are, and the server checks them', () => {
  assert.equal(parse(GroupSchema.field.name, ' x '), ' x ');
  assert.equal(parse(ListRoleBindingsRequestSchema.field.pageSize, '7'), '7');
});

test('booleans are true or false', () => {
  assert.equal(parse(GroupSchema.field.verified, 'true'), true);
  assert.equal(parse(GroupSchema.field.verified, 'false'), false);
  refuses(GroupSchema.field.verified, 'yes', /true or false/);
});

test('enums by name, in any case, with or without their prefix', () => {
  for (const text of ['dev', 'DEV', 'ORG_KIND_DEV', 'org-kind-dev']) {
    assert.equal(parse(GroupSchema.field.kind, text), 'ORG_KIND_DEV', text);
  }
  assert.equal(parse(GroupSchema.field.kind, 'aws-marketplace'), 'ORG_KIND_AWS_MARKETPLACE');
  refuses(GroupSchema.field.kind, 'none', /one of starter, customer, dev, infra, aws_marketplace$/);
});

test('capabilities by dotted or enum name, separated by commas or in several flags', () => {
  const { capabilities } = RoleSchema.field;
  const expected = ['CAP_IAM_GROUPS_LIST', 'CAP_IAM_ROLE_BINDINGS_LIST'];
  assert.deepEqual(parse(capabilities, 'groups.list,role_bindings.list'), expected);
  assert.deepEqual(parse(capabilities, 'groups.list', 'CAP_IAM_ROLE_BINDINGS_LIST'), expected);
  assert.deepEqual(parse(capabilities, ''), [], 'an empty value clears the list');
  refuses(capabilities, 'groups.fly', /a name such as/);
});

test('lists take a flag for each element, which can contain commas', () => {
  assert.deepEqual(parse(Identity_StaticKeysSchema.field.audiences, 'a,b', 'c'), ['a,b', 'c']);
  assert.deepEqual(parse(Identity_StaticKeysSchema.field.audiences, ''), []);
});

test('maps take key=value', () => {
  const { claims } = Identity_ClaimMatchSchema.field;
  assert.deepEqual(parse(claims, 'repo=a=b', 'ref=main'), { repo: 'a=b', ref: 'main' });
  assert.deepEqual(parse(claims, ''), {});
  refuses(claims, 'repo', /key=value/);
  refuses(claims, '=x', /key=value/);
});

test('durations have units', () => {
  const { ttl } = GroupInviteSchema.field;
  assert.deepEqual(
    ['7d', '90m', '1.5s', '30s'].map((text) => parse(ttl, text)),
    ['604800s', '5400s', '1.5s', '30s'],
  );
  refuses(ttl, 'soon', /units/);
});

test('a list of messages takes a JSON object for each', () => {
  const { requests } = BatchCreateRoleBindingsRequestSchema.field;
  assert.deepEqual(parse(requests, '{"parent":"a"}', '{}'), [{ parent: 'a' }, {}]);
  for (const text of ['{', '[]', '1', 'null']) refuses(requests, text, /JSON object/);
});
