import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Identities } from '../../../src/contract/gen/platform/events/v1/identities.platform_pb.js';
import { Groups } from '../../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { AccessService } from '../../../src/contract/gen/wharfinger/access/v1/access_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { callerWithRole, registeredCaller } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';

// The attacker has a token that is restricted to one group or to some capabilities, and wants more of its identity.

const { exchange } = SecurityTokenService.method;

onEveryDatabaseAndWire('a restricted token', (fixture) => {
  const restrict = async (token: string, restriction: { scopes?: string[]; cap?: string[] }) => {
    const request = { aud: [fixture.server.url], ...restriction };
    return fixture.as((await fixture.as(token).call(exchange, request)).token);
  };

  test('changes nothing of its identity, which no capability covers', async () => {
    const group = await fixture.newGroup();
    const caller = await callerWithRole(fixture.server, 'owner', group);
    const person = await registeredCaller(fixture.server, 'https://issuer.test');
    for (const restriction of [{ scopes: [group] }, { cap: ['groups.list', 'groups.create'] }]) {
      const restricted = await restrict(await caller.token(), restriction);
      for (const attack of [
        () => restricted.call(IdentitiesService.method.updateIdentityMetadata, { identityMetadata: { company: 'x' } }),
        () => restricted.call(Identities.method.updateMetadata, {}),
        () => restricted.call(GroupsService.method.requestGroupAccess, { groupUid: group }),
        () => restricted.call(Groups.method.requestGroupAccess, { groupId: group }),
      ]) {
        assert.match((await rejects(attack(), Code.PERMISSION_DENIED)).message, /token that is restricted/);
      }
      const personal = await restrict(await person.token(), restriction);
      await rejects(personal.call(Auth.method.delete, { id: person.uid }), Code.PERMISSION_DENIED);
    }
  });

  test('creates no organization, of which its identity would become the owner', async () => {
    for (const restriction of [{ scopes: [fixture.org] }, { cap: ['groups.create', 'groups.list'] }]) {
      const restricted = await restrict(fixture.server.token, restriction);
      const group = { name: `captured-${fixture.wire}` };
      const { message } = await rejects(
        restricted.call(GroupsService.method.createGroup, { group }),
        Code.PERMISSION_DENIED,
      );
      assert.match(message, /token that is restricted/);
      assert.equal((await restricted.call(GroupsService.method.checkEligibility, {})).eligible, false);
    }
  });

  test('learns nothing of the role bindings that it does not include', async () => {
    const [top, inner] = [await fixture.newGroup(), await fixture.newGroup()];
    const caller = await callerWithRole(fixture.server, 'owner', top);
    for (const [restriction, uid, capability] of [
      [{ scopes: [`${top}`], cap: ['repo.list'] }, top, 'groups.delete'],
      [{ scopes: [`${top}`], cap: ['repo.list'] }, inner, 'repo.list'],
    ] as const) {
      const restricted = await restrict(await caller.token(), {
        scopes: [...restriction.scopes],
        cap: [...restriction.cap],
      });
      const answer = await restricted.call(AccessService.method.explain, { uid, capability });
      assert.equal(answer.allowed, false);
      assert.deepEqual([answer.bindings, answer.groups, answer.roles], [[], [], []]);
      assert.match(answer.explanation, /The token does not give/);
    }
    const restricted = await restrict(await caller.token(), { cap: ['repo.list'] });
    const answer = await restricted.call(AccessService.method.explain, { uid: top, capability: 'repo.list' });
    assert.equal(answer.allowed, true);
    assert.deepEqual(answer.bindings, []);
  });
});
