import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupSchema, GroupsService } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { routedMethod } from '../client/api.ts';
import { type FieldPath, protoPath, queryFieldPaths, resourceFieldPaths, routeVariables } from './field-paths.ts';

const flags = (paths: readonly FieldPath[]): string[] => paths.map(({ flag }) => flag);

test('output-only fields have no flag', () => {
  assert.deepEqual(flags(resourceFieldPaths(GroupSchema, false)), ['name', 'description', 'verified', 'kind']);
});

test('nested fields have dotted flags, all members of a oneof have flags, and a time is one value', () => {
  const paths = resourceFieldPaths(IdentitySchema, false);
  const names = flags(paths);
  for (const flag of ['claim-match.issuer', 'claim-match.claims', 'static-keys.expiration-time', 'service-principal']) {
    assert.ok(names.includes(flag), flag);
  }
  const keys = paths.find(({ flag }) => flag === 'static-keys.issuer-keys');
  assert.equal(keys && protoPath(keys), 'static_keys.issuer_keys');
});

test('an update has no flags for immutable fields', () => {
  const hasFlag = (isUpdate: boolean) =>
    flags(resourceFieldPaths(IdentityProviderSchema, isUpdate)).includes('oidc.correlation-rule');
  assert.deepEqual([hasFlag(false), hasFlag(true)], [true, false]);
});

test('every field of a list request has a flag, those of the uidp filter without a prefix', () => {
  const routed = routedMethod(GroupsService.method.listGroups);
  assert.deepEqual(
    queryFieldPaths(routed, routed.route).map((path) => [path.flag, protoPath(path)]),
    [
      ['ancestors-of', 'uidp.ancestors_of'],
      ['descendants-of', 'uidp.descendants_of'],
      ['children-of', 'uidp.children_of'],
      ['in-root', 'uidp.in_root'],
      ['ids', 'uidp.ids'],
      ['name', 'name'],
      ['page-size', 'page_size'],
      ['page-token', 'page_token'],
      ['order-by', 'order_by'],
      ['skip', 'skip'],
    ],
  );
});

test('fields of the path, the body and the mask have no query flags', () => {
  for (const method of [GroupsService.method.createGroup, GroupsService.method.updateGroup]) {
    const routed = routedMethod(method);
    assert.deepEqual(queryFieldPaths(routed, routed.route), [], method.name);
  }
  assert.deepEqual(routeVariables('/iam/v2/groups/{group.uid=**}'), ['group.uid']);
});
