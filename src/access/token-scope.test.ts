import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { newUid, ROOT } from '../base/uid.ts';
import { allCapabilities, capabilitySetOf } from '../contract/capabilities.ts';
import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import { createCaller } from './create-caller.ts';
import { narrowGrants } from './token-scope.ts';

const LIST = [Capability.CAP_IAM_GROUPS_LIST];
const CREATE = [Capability.CAP_IAM_GROUPS_CREATE];
const org = newUid(ROOT);
const team = newUid(org);
const squad = newUid(team);
const other = newUid(org);
const person = newUid(ROOT);
const uids = [org, team, squad, other, newUid(ROOT)];

test('a grant at an ancestor holds at the scope and its descendants only', () => {
  const caller = createCaller(
    person,
    undefined,
    narrowGrants([{ group: org, capabilities: capabilitySetOf(LIST) }], { scopes: [team] }),
  );
  assert.ok(caller.can(LIST, team) && caller.can(LIST, squad));
  assert.ok(!caller.can(LIST, org) && !caller.can(LIST, other));
});

test('a grant below the scope stays at its group', () => {
  const grants = narrowGrants([{ group: squad, capabilities: capabilitySetOf(CREATE) }], { scopes: [team] });
  const caller = createCaller(person, undefined, grants);
  assert.ok(caller.can(CREATE, squad));
  assert.ok(!caller.can(CREATE, team));
});

test('a token scope never adds capabilities to the grants', () => {
  const capabilities = fc.uniqueArray(fc.constantFrom(...allCapabilities.slice(0, 6).map((c) => c.capability)));
  const uid = fc.constantFrom(...uids);
  const grant = fc.record({ group: uid, capabilities: capabilities.map(capabilitySetOf) });
  const tokenScope = fc.record({
    scopes: fc.option(fc.array(uid), { nil: undefined }),
    capabilities: fc.option(capabilities.map(capabilitySetOf), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(grant), tokenScope, uid, capabilities, (grants, scope, at, required) => {
      const unrestricted = createCaller(person, undefined, grants);
      const restricted = createCaller(person, undefined, narrowGrants(grants, scope));
      if (required.length > 0 && restricted.can(required, at)) assert.ok(unrestricted.can(required, at));
    }),
    { seed: 5, numRuns: 2000 },
  );
});
