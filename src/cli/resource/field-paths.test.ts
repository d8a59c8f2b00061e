import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupSchema, GroupsService } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { rowOf } from '../client/api.ts';
import { type Place, protoPath, queryPlaces, resourcePlaces, variablesOf } from './field-paths.ts';

const flags = (places: readonly Place[]): string[] => places.map(({ flag }) => flag);

test('what a client may set in a resource, and nothing that the server sets', () => {
  assert.deepEqual(flags(resourcePlaces(GroupSchema, false)), ['name', 'description', 'verified', 'kind']);
});

test('what lies deeper is dotted, all members of a oneof are there, and a time is one value', () => {
  const places = resourcePlaces(IdentitySchema, false);
  const found = flags(places);
  for (const flag of ['claim-match.issuer', 'claim-match.claims', 'static-keys.expiration-time', 'service-principal']) {
    assert.ok(found.includes(flag), flag);
  }
  const keys = places.find(({ flag }) => flag === 'static-keys.issuer-keys');
  assert.equal(keys && protoPath(keys), 'static_keys.issuer_keys');
});

test('a change leaves out what only a creation can set', () => {
  const isThere = (isChange: boolean) =>
    flags(resourcePlaces(IdentityProviderSchema, isChange)).includes('oidc.correlation-rule');
  assert.deepEqual([isThere(false), isThere(true)], [true, false]);
});

test('every field of a list request is a flag; the place in the tree has no prefix', () => {
  const row = rowOf(GroupsService.method.listGroups);
  assert.deepEqual(
    queryPlaces(row, row.route).map((place) => [place.flag, protoPath(place)]),
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

test('what path and body carry, and the mask, are no flags of a query', () => {
  for (const method of [GroupsService.method.createGroup, GroupsService.method.updateGroup]) {
    const row = rowOf(method);
    assert.deepEqual(queryPlaces(row, row.route), [], method.name);
  }
  assert.deepEqual(variablesOf('/iam/v2/groups/{group.uid=**}'), ['group.uid']);
});
