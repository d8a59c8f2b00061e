import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { newUid, ROOT } from '../base/uid.ts';
import { allCapabilities, setOf } from '../contract/capabilities.ts';
import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import { createCaller } from './caller.ts';
import { narrowGrants } from './token-scope.ts';

const LIST = [Capability.CAP_IAM_GROUPS_LIST];
const CREATE = [Capability.CAP_IAM_GROUPS_CREATE];
const org = newUid(ROOT);
const team = newUid(org);
const squad = newUid(team);
const other = newUid(org);
const person = newUid(ROOT);
const places = [org, team, squad, other, newUid(ROOT)];

test('a grant from above holds at the scope, and nowhere else', () => {
  const caller = createCaller(
    person,
    undefined,
    narrowGrants([{ group: org, capabilities: setOf(LIST) }], { scopes: [team] }),
  );
  assert.ok(caller.can(LIST, team) && caller.can(LIST, squad));
  assert.ok(!caller.can(LIST, org) && !caller.can(LIST, other));
});

test('a grant below the scope stays where it is', () => {
  const grants = narrowGrants([{ group: squad, capabilities: setOf(CREATE) }], { scopes: [team] });
  const caller = createCaller(person, undefined, grants);
  assert.ok(caller.can(CREATE, squad));
  assert.ok(!caller.can(CREATE, team));
});

test('no narrowing ever gives more than the grants themselves', () => {
  const capabilities = fc.uniqueArray(fc.constantFrom(...allCapabilities.slice(0, 6).map((c) => c.capability)));
  const place = fc.constantFrom(...places);
  const grant = fc.record({ group: place, capabilities: capabilities.map(setOf) });
  const narrowing = fc.record({
    scopes: fc.option(fc.array(place), { nil: undefined }),
    capabilities: fc.option(capabilities.map(setOf), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(grant), narrowing, place, capabilities, (grants, restriction, at, wanted) => {
      const whole = createCaller(person, undefined, grants);
      const restricted = createCaller(person, undefined, narrowGrants(grants, restriction));
      if (wanted.length > 0 && restricted.can(wanted, at)) assert.ok(whole.can(wanted, at));
    }),
    { seed: 5, numRuns: 2000 },
  );
});
