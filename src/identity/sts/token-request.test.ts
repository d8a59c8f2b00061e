import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { TokenScope } from '../../access/token-scope.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { isWithin, newUid, ROOT } from '../../base/uid.ts';
import { allCapabilities, capabilitySetOf, covers } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { ExchangeRequestSchema } from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { parseTokenRequest, restrictTokenScope } from './token-request.ts';

const request = (fields: MessageInitShape<typeof ExchangeRequestSchema>) =>
  create(ExchangeRequestSchema, { aud: ['a'], ...fields });
const org = newUid(ROOT);
const team = newUid(org);
const squad = newUid(team);
const other = newUid(org);

test('audiences, scopes and capabilities are read without duplicates', () => {
  const requested = parseTokenRequest(
    request({
      aud: ['a', 'https://b.example', 'a'],
      scope: org,
      scopes: [team, org],
      cap: ['groups.list', 'roles.list', 'groups.list'],
    }),
  );
  assert.deepEqual(requested, {
    audiences: ['a', 'https://b.example'],
    scopes: [org, team],
    capabilities: capabilitySetOf([Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST]),
  });
  assert.deepEqual(parseTokenRequest(request({})), { audiences: ['a'], scopes: undefined, capabilities: undefined });
});

test('every capability can be requested', () => {
  const { capabilities } = parseTokenRequest(request({ cap: allCapabilities.map(({ name }) => name) }));
  assert.equal(capabilities, capabilitySetOf(allCapabilities.map(({ capability }) => capability)));
});

const invalid: readonly (readonly [
  name: string,
  fields: MessageInitShape<typeof ExchangeRequestSchema>,
  field: string,
  message: RegExp,
])[] = [
  ['no audience', { aud: [] }, 'aud', /is required/],
  ['an empty audience', { aud: ['a', ''] }, 'aud', /1 to 255 characters/],
  ['an audience with a space', { aud: ['a b'] }, 'aud', /without spaces/],
  ['an audience with a control character', { aud: ['a\u0000'] }, 'aud', /without spaces/],
  ['a long audience', { aud: ['a'.repeat(256)] }, 'aud', /255/],
  ['many audiences', { aud: Array.from({ length: 11 }, (_, i) => `a${i}`) }, 'aud', /at most 10/],
  ['a scope that is a name', { scope: 'my-org' }, 'scopes', /must be uids/],
  ['an invalid scope among others', { scopes: [org, `${org}/x`] }, 'scopes', /must be uids/],
  ['the root as a scope', { scopes: ['/'] }, 'scopes', /must be uids/],
  ['many scopes', { scopes: Array.from({ length: 21 }, () => newUid(ROOT)) }, 'scopes', /at most 20/],
  ['an unknown capability', { cap: ['groups.list', 'groups.fly'] }, 'cap', /no capability "groups\.fly"/],
  ['a capability by its number', { cap: ['101'] }, 'cap', /no capability "101"/],
  ['an empty capability', { cap: [''] }, 'cap', /no capability ""/],
  ['a huge capability', { cap: ['x'.repeat(10_000)] }, 'cap', /^Invalid argument: cap: .{100,200}$/],
  ['many capabilities', { cap: Array.from({ length: 1000 }, () => 'groups.list') }, 'cap', /at most/],
];
for (const [name, fields, field, message] of invalid) {
  test(`${name} is refused with the name of the field`, () => {
    assert.throws(
      () => parseTokenRequest(request(fields)),
      (error: unknown) => {
        assert.ok(error instanceof ApiError && error.code === Code.INVALID_ARGUMENT);
        assert.match(error.message, message);
        const [detail] = error.details;
        assert.ok(detail?.type === 'BadRequest' && detail.fieldViolations.every((found) => found.field === field));
        return true;
      },
    );
  });
}

test('a token scope can be restricted further and not extended', () => {
  const held: TokenScope = { scopes: [team], capabilities: capabilitySetOf([Capability.CAP_IAM_GROUPS_LIST]) };
  assert.deepEqual(restrictTokenScope(held, {}), held);
  assert.deepEqual(restrictTokenScope({}, held), held);
  assert.deepEqual(restrictTokenScope(held, { scopes: [squad] }), { ...held, scopes: [squad] });
  for (const scope of [org, other, newUid(ROOT)]) {
    assert.throws(() => restrictTokenScope(held, { scopes: [squad, scope] }), {
      code: Code.PERMISSION_DENIED,
      message: new RegExp(scope),
    });
  }
  assert.throws(() => restrictTokenScope(held, { capabilities: capabilitySetOf([Capability.CAP_IAM_ROLES_LIST]) }), {
    code: Code.PERMISSION_DENIED,
    message: /capabilities that do not include roles\.list/,
  });
});

test('the result never exceeds the held token scope', () => {
  const scopeLists = fc.uniqueArray(fc.constantFrom(org, team, squad, other), { minLength: 1 });
  const capabilitySets = fc
    .uniqueArray(fc.constantFrom(...allCapabilities.slice(0, 5).map((c) => c.capability)))
    .map(capabilitySetOf);
  const tokenScopes = fc.record({
    scopes: fc.option(scopeLists, { nil: undefined }),
    capabilities: fc.option(capabilitySets, { nil: undefined }),
  });
  fc.assert(
    fc.property(tokenScopes, tokenScopes, (held, requested) => {
      let result: TokenScope;
      try {
        result = restrictTokenScope(held, requested);
      } catch (error) {
        assert.ok(error instanceof ApiError && error.code === Code.PERMISSION_DENIED);
        return;
      }
      const { scopes, capabilities } = held;
      if (scopes) assert.ok(result.scopes?.every((scope) => scopes.some((outer) => isWithin(scope, outer))));
      if (capabilities !== undefined) {
        assert.ok(result.capabilities !== undefined && covers(capabilities, result.capabilities));
      }
    }),
    { seed: 3, numRuns: 2000 },
  );
});
