import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import fc from 'fast-check';
import type { TokenScope } from '../../access/token-scope.ts';
import { ApiError, Code } from '../../base/errors.ts';
import { isWithin, newUid, ROOT } from '../../base/uid.ts';
import { allCapabilities, covers, setOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { ExchangeRequestSchema } from '../../contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { narrowed, readWish } from './token-request.ts';

const request = (fields: MessageInitShape<typeof ExchangeRequestSchema>) =>
  create(ExchangeRequestSchema, { aud: ['a'], ...fields });
const org = newUid(ROOT);
const team = newUid(org);
const squad = newUid(team);
const other = newUid(org);

test('a wish is read with its parts united and each named once', () => {
  const wish = readWish(
    request({
      aud: ['a', 'https://b.example', 'a'],
      scope: org,
      scopes: [team, org],
      cap: ['groups.list', 'roles.list', 'groups.list'],
    }),
  );
  assert.deepEqual(wish, {
    audiences: ['a', 'https://b.example'],
    scopes: [org, team],
    capabilities: setOf([Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST]),
  });
  assert.deepEqual(readWish(request({})), { audiences: ['a'], scopes: undefined, capabilities: undefined });
});

test('every capability can be asked for', () => {
  const { capabilities } = readWish(request({ cap: allCapabilities.map(({ name }) => name) }));
  assert.equal(capabilities, setOf(allCapabilities.map(({ capability }) => capability)));
});

const wrong: readonly (readonly [
  name: string,
  fields: MessageInitShape<typeof ExchangeRequestSchema>,
  field: string,
  says: RegExp,
])[] = [
  ['no audience', { aud: [] }, 'aud', /is required/],
  ['an empty audience', { aud: ['a', ''] }, 'aud', /1 to 255 characters/],
  ['an audience with a space', { aud: ['a b'] }, 'aud', /without spaces/],
  ['an audience with a control character', { aud: ['a\u0000'] }, 'aud', /without spaces/],
  ['a long audience', { aud: ['a'.repeat(256)] }, 'aud', /255/],
  ['many audiences', { aud: Array.from({ length: 11 }, (_, i) => `a${i}`) }, 'aud', /at most 10/],
  ['a scope that is a name', { scope: 'my-org' }, 'scopes', /must be uids/],
  ['scopes of which one is none', { scopes: [org, `${org}/x`] }, 'scopes', /must be uids/],
  ['the root as a scope', { scopes: ['/'] }, 'scopes', /must be uids/],
  ['many scopes', { scopes: Array.from({ length: 21 }, () => newUid(ROOT)) }, 'scopes', /at most 20/],
  ['an unknown capability', { cap: ['groups.list', 'groups.fly'] }, 'cap', /no capability "groups\.fly"/],
  ['a capability by its number', { cap: ['101'] }, 'cap', /no capability "101"/],
  ['an empty capability', { cap: [''] }, 'cap', /no capability ""/],
  ['a huge capability', { cap: ['x'.repeat(10_000)] }, 'cap', /^Invalid argument: cap: .{100,200}$/],
  ['many capabilities', { cap: Array.from({ length: 1000 }, () => 'groups.list') }, 'cap', /at most/],
];
for (const [name, fields, field, says] of wrong) {
  test(`${name} is refused by name`, () => {
    assert.throws(
      () => readWish(request(fields)),
      (error: unknown) => {
        assert.ok(error instanceof ApiError && error.code === Code.INVALID_ARGUMENT);
        assert.match(error.message, says);
        const [detail] = error.details;
        assert.ok(detail?.type === 'BadRequest' && detail.fieldViolations.every((found) => found.field === field));
        return true;
      },
    );
  });
}

test('narrowing a narrow token further is fine, widening it is denied', () => {
  const held: TokenScope = { scopes: [team], capabilities: setOf([Capability.CAP_IAM_GROUPS_LIST]) };
  assert.deepEqual(narrowed(held, {}), held);
  assert.deepEqual(narrowed({}, held), held);
  assert.deepEqual(narrowed(held, { scopes: [squad] }), { ...held, scopes: [squad] });
  for (const scope of [org, other, newUid(ROOT)]) {
    assert.throws(() => narrowed(held, { scopes: [squad, scope] }), {
      code: Code.PERMISSION_DENIED,
      message: new RegExp(scope),
    });
  }
  assert.throws(() => narrowed(held, { capabilities: setOf([Capability.CAP_IAM_ROLES_LIST]) }), {
    code: Code.PERMISSION_DENIED,
    message: /not good for roles\.list/,
  });
});

test('whatever is wished for, the result is never wider than what was held', () => {
  const places = fc.uniqueArray(fc.constantFrom(org, team, squad, other), { minLength: 1 });
  const sets = fc.uniqueArray(fc.constantFrom(...allCapabilities.slice(0, 5).map((c) => c.capability))).map(setOf);
  const narrowing = fc.record({
    scopes: fc.option(places, { nil: undefined }),
    capabilities: fc.option(sets, { nil: undefined }),
  });
  fc.assert(
    fc.property(narrowing, narrowing, (held, wish) => {
      let result: TokenScope;
      try {
        result = narrowed(held, wish);
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
