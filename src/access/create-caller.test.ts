import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUid, parseUid, ROOT, type Uid } from '../base/uid.ts';
import { capabilitySetOf } from '../contract/capabilities.ts';
import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import { anonymousCaller, createCaller } from './create-caller.ts';

const LIST = [Capability.CAP_IAM_GROUPS_LIST];
const BOTH = [...LIST, Capability.CAP_IAM_GROUPS_CREATE];
const org = newUid(ROOT);
const team = newUid(org);
const squad = newUid(team);
const other = newUid(org);
const person = newUid(ROOT);

const grant = (group: Uid, capabilities: Capability[]) => ({ group, capabilities: capabilitySetOf(capabilities) });

test('a grant holds at its group and its descendants, not at parents or siblings', () => {
  const caller = createCaller(person, undefined, [grant(team, LIST)]);
  assert.ok(caller.can(LIST, team));
  assert.ok(caller.can(LIST, squad));
  assert.ok(!caller.can(LIST, org));
  assert.ok(!caller.can(LIST, other));
  assert.ok(!caller.can(BOTH, team));
});

test('a uid that shares a prefix with a group is not a descendant of it', () => {
  const caller = createCaller(person, undefined, [grant(team, LIST)]);
  const similar = parseUid('uid', `${team.slice(0, -1)}${team.endsWith('0') ? '1' : '0'}`);
  assert.ok(!caller.can(LIST, similar));
});

test('grants at a group and at its ancestors add up', () => {
  const caller = createCaller(person, undefined, [grant(org, LIST), grant(team, [Capability.CAP_IAM_GROUPS_CREATE])]);
  assert.ok(caller.can(BOTH, squad));
  assert.ok(!caller.can(BOTH, org));
  assert.deepEqual(caller.reach(BOTH), [team]);
});

test('reach returns the outermost groups only', () => {
  const caller = createCaller(person, undefined, [grant(squad, LIST), grant(team, LIST), grant(other, LIST)]);
  assert.deepEqual(caller.reach(LIST), [team, other].sort());
  assert.deepEqual(caller.reach(BOTH), []);
});

test('an identity that belongs to a group has no access outside of it', () => {
  const machine = newUid(team);
  const caller = createCaller(machine, undefined, [grant(org, LIST), grant(other, LIST), grant(squad, LIST)]);
  assert.ok(!caller.can(LIST, org));
  assert.ok(!caller.can(LIST, other));
  assert.deepEqual(caller.reach(LIST), [squad]);
});

test('an anonymous caller can do nothing', () => {
  assert.ok(!anonymousCaller.can(LIST, org));
  assert.deepEqual(anonymousCaller.reach(LIST), []);
});
