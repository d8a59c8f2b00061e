import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../../src/base/errors.ts';
import { capabilityByName } from '../../../src/contract/capabilities.ts';
import { ExternalGroupRoleMappingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupInvitesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { GroupInvites } from '../../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { Identities } from '../../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import { RoleBindings } from '../../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { readOwner } from '../../../src/identity/owner/owner-key.ts';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole, type TestCaller } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';
import type { Client } from '../../support/wires.ts';

const { getRoleBinding, listRoleBindings, updateRoleBinding, deleteRoleBinding } = RoleBindingsService.method;
const { updateIdentity, deleteIdentity } = IdentitiesService.method;
const { createRole, getRole, updateRole } = RolesService.method;
const { createGroupInvite, deleteGroupInvite } = GroupInvitesService.method;
const { createIdentityProvider, updateIdentityProvider, deleteIdentityProvider } = IdentityProvidersService.method;
const { createExternalGroupRoleMapping, deleteExternalGroupRoleMapping, batchDeleteExternalGroupRoleMappings } =
  ExternalGroupRoleMappingsService.method;

const OWNER = builtinRoleUid('owner');
const OPERATOR = builtinRoleUid('operator');
const VIEWER = builtinRoleUid('viewer');

/** Every capability for changing access, and none of what owners can do besides. */
const ACCESS = ['role_bindings', 'roles', 'identity', 'identity_providers', 'group_invites']
  .flatMap((kind) => ['list', 'create', 'update', 'delete'].map((verb) => capabilityByName(`${kind}.${verb}`)))
  .filter((capability) => capability !== undefined);

onEveryDatabaseAndWire('removing what is stronger', (fixture) => {
  let group: string;
  let victim: TestCaller;
  let owner: Client;
  let manager: Client;
  before(async () => {
    group = await fixture.newGroup();
    victim = await callerWithRole(fixture.server, 'owner', group);
    owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', fixture.org)).token());
    const role = { name: 'access manager', capabilities: ACCESS };
    const { uid } = await fixture.api.call(createRole, { parent: group, role });
    manager = fixture.as(await (await callerWithRole(fixture.server, uid, group)).token());
  });

  const denied = (work: Promise<unknown>) => rejects(work, Code.PERMISSION_DENIED);

  const bindingOf = async (identity: string, parent: string) => {
    const { roleBindings } = await fixture.api.call(listRoleBindings, { identity, uidp: { childrenOf: parent } });
    return roleBindings[0]?.uid ?? assert.fail('there is no such binding');
  };

  test('an owner cannot delete, demote or re-bind the operator', async () => {
    const { identity = '' } = (await readOwner(fixture.server.dataLocation.dataDir)) ?? {};
    const uid = await bindingOf(identity, fixture.org);
    const mine = await callerWithRole(fixture.server, 'viewer', fixture.org);
    await denied(owner.call(deleteRoleBinding, { uid }));
    await denied(owner.call(RoleBindings.method.delete, { id: uid }));
    await denied(owner.call(updateRoleBinding, { roleBinding: { uid, roleUid: VIEWER } }));
    await denied(owner.call(updateRoleBinding, { roleBinding: { uid, roleUid: OWNER, identityUid: mine.uid } }));
    await denied(owner.call(RoleBindings.method.update, { id: uid, role: VIEWER, identity }));
    assert.equal((await fixture.api.call(getRoleBinding, { uid })).roleUid, OPERATOR);
  });

  test('an owner cannot delete a machine that is an operator, or take over its login', async () => {
    const machine = await callerWithRole(fixture.server, 'operator', fixture.org);
    await denied(owner.call(deleteIdentity, { uid: machine.uid }));
    await denied(owner.call(Identities.method.delete, { id: machine.uid }));
    const claims = { iss: { case: 'issuer' as const, value: 'https://mine.test' } };
    const relationship = {
      case: 'claimMatch' as const,
      value: { ...claims, sub: { case: 'subject' as const, value: 'me' } },
    };
    await denied(owner.call(updateIdentity, { identity: { uid: machine.uid, relationship } }));
    await fixture.as(await machine.token()).call(getRole, { uid: OWNER });
    await fixture.api.call(deleteIdentity, { uid: machine.uid });
  });

  test('role_bindings.update and role_bindings.delete alone do not demote or remove an owner', async () => {
    const uid = await bindingOf(victim.uid, group);
    const weak = await fixture.api.call(createRole, {
      parent: group,
      role: { name: 'weak', capabilities: ACCESS.slice(0, 1) },
    });
    const v2beta1 = { id: 'chainguard.platform.iam.v2beta1.RoleBindingsService/UpdateRoleBinding' };
    const token = await (await callerWithRole(fixture.server, 'owner', group)).token();
    await denied(manager.call(updateRoleBinding, { roleBinding: { uid, roleUid: weak.uid } }));
    await denied(manager.call(RoleBindings.method.update, { id: uid, role: weak.uid, identity: victim.uid }));
    await denied(manager.call(deleteRoleBinding, { uid }));
    await denied(manager.call(RoleBindings.method.delete, { id: uid }));
    await denied(manager.call(deleteIdentity, { uid: victim.uid }));
    // An equal may.
    await fixture.as(token).call(updateRoleBinding, { roleBinding: { uid, roleUid: VIEWER } }, { ...v2beta1, token });
    await fixture.as(token).call(updateRoleBinding, { roleBinding: { uid, roleUid: OWNER } });
  });

  test('a role is not reduced, so that its holders keep what the caller does not hold', async () => {
    const strong = [...ACCESS.slice(0, 1), capabilityByName('repo.delete') ?? assert.fail()];
    const { uid } = await fixture.api.call(createRole, {
      parent: group,
      role: { name: 'strong', capabilities: strong },
    });
    await denied(manager.call(updateRole, { role: { uid, capabilities: ACCESS.slice(0, 1) } }));
    assert.equal((await fixture.api.call(getRole, { uid })).capabilities.length, 2);
  });

  test('an invite for a stronger role is not deleted', async () => {
    const groupInvite = { roleUid: OWNER, ttl: durationFromMs(60_000) };
    const { uid } = await fixture.api.call(createGroupInvite, { parent: group, groupInvite });
    await denied(manager.call(deleteGroupInvite, { uid }));
    await denied(manager.call(GroupInvites.method.delete, { id: uid }));
    await fixture.api.call(deleteGroupInvite, { uid });
  });

  test('an identity provider that gives stronger roles, and its mappings, are not removed or weakened', async () => {
    const parent = await fixture.newOrganization();
    const role = { name: 'access manager', capabilities: ACCESS };
    const { uid: managing } = await fixture.api.call(createRole, { parent, role });
    const manager = fixture.as(await (await callerWithRole(fixture.server, managing, parent)).token());
    const oidc = { issuer: 'https://idp.test', clientId: 'client' };
    const provider = async (defaultRole: string) => {
      const configuration = { case: 'oidc' as const, value: oidc };
      const identityProvider = { name: 'provider', defaultRole, configuration };
      return (await fixture.api.call(createIdentityProvider, { parent, identityProvider })).uid;
    };
    const { uid: weak } = await fixture.api.call(createRole, {
      parent,
      role: { name: 'weak', capabilities: ACCESS.slice(0, 1) },
    });
    const ofOwners = await provider(OWNER);
    await denied(manager.call(deleteIdentityProvider, { uid: ofOwners }));
    const demoted = { uid: ofOwners, defaultRole: weak };
    await denied(manager.call(updateIdentityProvider, { identityProvider: demoted }));

    const mapped = await provider(weak);
    const mapping = { externalGroupId: 'admins', roleUid: OWNER };
    const { uid } = await fixture.api.call(createExternalGroupRoleMapping, {
      parent: mapped,
      externalGroupRoleMapping: mapping,
    });
    await denied(manager.call(deleteExternalGroupRoleMapping, { uid }));
    await denied(manager.call(batchDeleteExternalGroupRoleMappings, { parent: mapped, names: [uid] }));
    await denied(manager.call(deleteIdentityProvider, { uid: mapped }));
    for (const each of [ofOwners, mapped]) await fixture.api.call(deleteIdentityProvider, { uid: each });
  });
});
