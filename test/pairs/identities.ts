import { capabilityName } from '../../src/contract/capabilities.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { type Group, GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService, type Identity } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  type RoleBinding,
  RoleBindingsService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { type Role, RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import * as v1Groups from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import * as v1Identities from '../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import * as v1Roles from '../../src/contract/gen/platform/iam/v1/role.platform_pb.js';
import * as v1Bindings from '../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { builtinRoleUid } from '../support/callers.ts';
import { oneofToObject, type VersionPair } from '../support/version-pairs.ts';
import type { Client } from '../support/wires.ts';

const VIEWER = builtinRoleUid('viewer');

const EDITOR = builtinRoleUid('editor');

export const groups: VersionPair<v1Groups.Group, Group> = {
  resource: 'group',
  v1: {
    create: (api, parent, name) =>
      api.call(v1Groups.Groups.method.create, { parent, group: { name, description: 'by v1' } }),
    find: async (api, id) => (await api.call(v1Groups.Groups.method.list, { id })).items,
    update: (api, { id, name }) => api.call(v1Groups.Groups.method.update, { id, name: `${name} x` }),
    remove: (api, id) => api.call(v1Groups.Groups.method.delete, { id }),
    commonFields: ({ id: uid, name, description, verified }) => ({ uid, name, description, verified }),
  },
  v2: {
    create: (api, parent, name) => api.call(GroupsService.method.createGroup, { parent, group: { name } }),
    get: (api, uid) => api.call(GroupsService.method.getGroup, { uid }),
    find: async (api, uid) => (await api.call(GroupsService.method.listGroups, { uidp: { ids: [uid] } })).groups,
    update: (api, { uid }) =>
      api.call(GroupsService.method.updateGroup, { group: { uid, description: 'by v2', verified: true } }),
    remove: (api, uid) => api.call(GroupsService.method.deleteGroup, { uid }),
    commonFields: ({ uid, name, description, verified }) => ({ uid, name, description, verified }),
  },
};

const claimMatch = (subject: string) => ({
  case: 'claimMatch' as const,
  value: {
    iss: { case: 'issuer' as const, value: 'https://issuer.example.com' },
    sub: { case: 'subjectPattern' as const, value: subject },
    claims: { ref: 'main' },
  },
});

export const identities: VersionPair<v1Identities.Identity, Identity> = {
  resource: 'identity',
  v1: {
    create: (api, parentId, name) =>
      api.call(v1Identities.Identities.method.create, {
        parentId,
        identity: { name, relationship: claimMatch('one') },
      }),
    find: async (api, id) => (await api.call(v1Identities.Identities.method.list, { id })).items,
    update: (api, { id, name }) =>
      api.call(v1Identities.Identities.method.update, {
        id,
        name,
        relationship: { case: 'awsIdentity', value: { awsAccount: '123456789012' } },
      }),
    remove: (api, id) => api.call(v1Identities.Identities.method.delete, { id }),
    commonFields: ({ id: uid, name, description, createdAt, updatedAt, relationship }) => ({
      uid,
      name,
      description,
      created: createdAt,
      updated: updatedAt,
      ...oneofToObject(relationship),
    }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(IdentitiesService.method.createIdentity, {
        parent,
        identity: { name, relationship: claimMatch('two') },
      }),
    get: (api, uid) => api.call(IdentitiesService.method.getIdentity, { uid }),
    find: async (api, uid) =>
      (await api.call(IdentitiesService.method.listIdentities, { uidp: { ids: [uid] } })).identities,
    update: (api, { uid }) =>
      api.call(IdentitiesService.method.updateIdentity, { identity: { uid, relationship: claimMatch('three') } }),
    remove: (api, uid) => api.call(IdentitiesService.method.deleteIdentity, { uid }),
    commonFields: ({ uid, name, description, createTime, updateTime, relationship }) => ({
      uid,
      name,
      description,
      created: createTime,
      updated: updateTime,
      ...oneofToObject(relationship),
    }),
  },
};

export const roles: VersionPair<v1Roles.Role, Role> = {
  resource: 'role',
  v1: {
    create: (api, parentId, name) =>
      api.call(v1Roles.Roles.method.create, { parentId, role: { name, capabilities: ['groups.list', 'repo.list'] } }),
    find: async (api, id) => (await api.call(v1Roles.Roles.method.list, { id })).items,
    update: (api, { id, name }) => api.call(v1Roles.Roles.method.update, { id, name, capabilities: ['groups.list'] }),
    remove: (api, id) => api.call(v1Roles.Roles.method.delete, { id }),
    commonFields: ({ id: uid, name, description, capabilities }) => ({ uid, name, description, capabilities }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(RolesService.method.createRole, {
        parent,
        role: { name, capabilities: [Capability.CAP_IAM_GROUPS_LIST] },
      }),
    get: (api, uid) => api.call(RolesService.method.getRole, { uid }),
    find: async (api, uid) => (await api.call(RolesService.method.listRoles, { uidp: { ids: [uid] } })).roles,
    update: (api, { uid }) => api.call(RolesService.method.updateRole, { role: { uid, description: 'by v2' } }),
    remove: (api, uid) => api.call(RolesService.method.deleteRole, { uid }),
    commonFields: ({ uid, name, description, capabilities }) => ({
      uid,
      name,
      description,
      capabilities: capabilities.map(capabilityName),
    }),
  },
};

/** Creates an identity for a role binding, in the group of the binding. */
async function newIdentity(api: Client, parent: string): Promise<string> {
  return (await api.call(IdentitiesService.method.createIdentity, { parent, identity: { name: 'bound' } })).uid;
}

export const roleBindings: VersionPair<v1Bindings.RoleBindingList_Binding | v1Bindings.RoleBinding, RoleBinding> = {
  resource: 'role binding',
  v1: {
    create: async (api, parent) =>
      api.call(v1Bindings.RoleBindings.method.create, {
        parent,
        roleBinding: { identity: await newIdentity(api, parent), role: VIEWER },
      }),
    find: async (api, id) => (await api.call(v1Bindings.RoleBindings.method.list, { id })).items,
    update: (api, { id, identity }) => api.call(v1Bindings.RoleBindings.method.update, { id, identity, role: EDITOR }),
    remove: (api, id) => api.call(v1Bindings.RoleBindings.method.delete, { id }),
    commonFields: ({ id: uid, identity, role, group }) => ({
      uid,
      identity,
      role: typeof role === 'object' ? role.id : role,
      group: typeof group === 'object' ? group.id : group,
    }),
  },
  v2: {
    create: async (api, parent) =>
      api.call(RoleBindingsService.method.createRoleBinding, {
        parent,
        roleBinding: { identityUid: await newIdentity(api, parent), roleUid: VIEWER },
      }),
    get: (api, uid) => api.call(RoleBindingsService.method.getRoleBinding, { uid }),
    find: async (api, uid) =>
      (await api.call(RoleBindingsService.method.listRoleBindings, { uidp: { ids: [uid] } })).roleBindings,
    update: (api, { uid }) =>
      api.call(RoleBindingsService.method.updateRoleBinding, { roleBinding: { uid, roleUid: EDITOR } }),
    remove: (api, uid) => api.call(RoleBindingsService.method.deleteRoleBinding, { uid }),
    commonFields: ({ uid, identity, role, group }) => ({
      uid,
      identity: identity?.uid,
      role: role?.uid,
      group: group?.uid,
    }),
  },
};
