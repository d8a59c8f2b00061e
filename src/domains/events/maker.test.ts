import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUid, ROOT } from '../../base/uid.ts';
import { capabilitySetOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from '../../resource/caller.ts';
import { decodeMaker, encodeMaker, pauseReason } from './maker.ts';

function caller(login: Caller['login'], can = true): Caller {
  const made: Caller = {
    uid: newUid(ROOT),
    actor: undefined,
    isRestricted: false,
    login,
    can: () => can,
    lacks: () => 0n,
    reach: () => [],
    current: () => made,
  };
  return made;
}

test('a maker is stored with the provider of its login and the restrictions of its token', () => {
  const login = {
    provider: { uid: newUid(ROOT), groups: ['harbour'] },
    scopes: [newUid(ROOT)],
    capabilities: capabilitySetOf([Capability.CAP_EVENTS_SUBSCRIPTION_CREATE]),
  };
  const maker = caller(login);
  assert.deepEqual(decodeMaker(encodeMaker(maker, 5)), { identity: maker.uid, since: 5, ...login });
});

test('a maker without restrictions stays without them', () => {
  const { scopes, capabilities, provider } = decodeMaker(encodeMaker(caller(undefined), 5));
  assert.deepEqual([scopes, capabilities, provider], [undefined, undefined, undefined]);
});

test('a token that is restricted to no capabilities stays restricted', () => {
  assert.equal(decodeMaker(encodeMaker(caller({ capabilities: 0n, scopes: [] }), 5)).capabilities, 0n);
});

test('the reason of a pause says what to do', () => {
  const maker = decodeMaker(encodeMaker(caller(undefined), 5));
  const group = newUid(ROOT);
  assert.equal(pauseReason(maker, caller(undefined), group), undefined);
  assert.match(pauseReason(maker, caller(undefined, false), group) ?? '', /subscriptions\.create.*take it over/);
  assert.match(pauseReason(maker, undefined, group) ?? '', /was deleted.*take it over/);
});
