import assert from 'node:assert/strict';
import { parentOf } from '../../src/base/uid.ts';
import {
  type AccountAssociation,
  AccountAssociationsService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import {
  type ExternalGroupRoleMapping,
  ExternalGroupRoleMappingsService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import {
  type GroupInvite,
  GroupInvitesService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import {
  type IdentityProvider,
  IdentityProvidersService,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import * as v1Associations from '../../src/contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import * as v1Mappings from '../../src/contract/gen/platform/iam/v1/external_group_role_mappings.platform_pb.js';
import * as v1Invites from '../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import * as v1Providers from '../../src/contract/gen/platform/iam/v1/identity_providers.platform_pb.js';
import type { ApiFixture } from '../support/api-fixture.ts';
import { builtinRoleUid } from '../support/callers.ts';
import { oneofToObject, type VersionPair } from '../support/version-pairs.ts';

const VIEWER = builtinRoleUid('viewer');

const EDITOR = builtinRoleUid('editor');

const oidc = (clientId: string) => ({
  case: 'oidc' as const,
  value: { issuer: 'https://login.example.com', clientId, clientSecret: 'not returned', additionalScopes: ['groups'] },
});

export const identityProviders: VersionPair<v1Providers.IdentityProvider, IdentityProvider> = {
  resource: 'identity provider',
  parent: (fixture: ApiFixture) => fixture.newOrganization(),
  v1: {
    create: (api, parentId, name) =>
      api.call(v1Providers.IdentityProviders.method.create, {
        parentId,
        identityProvider: { name, defaultRole: VIEWER, configuration: oidc('one') },
      }),
    find: async (api, id) => (await api.call(v1Providers.IdentityProviders.method.list, { id })).items,
    update: (api, { id, name }) =>
      api.call(v1Providers.IdentityProviders.method.update, {
        id,
        name,
        description: 'by v1',
        defaultRole: VIEWER,
        configuration: oidc('two'),
      }),
    remove: (api, id) => api.call(v1Providers.IdentityProviders.method.delete, { id }),
    commonFields: ({ id: uid, name, description, defaultRole, configuration }) => ({
      uid,
      name,
      description,
      defaultRole,
      ...oneofToObject(configuration),
    }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(IdentityProvidersService.method.createIdentityProvider, {
        parent,
        identityProvider: { name, defaultRole: VIEWER, configuration: oidc('three') },
      }),
    get: (api, uid) => api.call(IdentityProvidersService.method.getIdentityProvider, { uid }),
    find: async (api, uid) =>
      (await api.call(IdentityProvidersService.method.listIdentityProviders, { uidp: { ids: [uid] } }))
        .identityProviders,
    update: (api, { uid }) =>
      api.call(IdentityProvidersService.method.updateIdentityProvider, {
        identityProvider: { uid, description: 'by v2' },
      }),
    remove: (api, uid) => api.call(IdentityProvidersService.method.deleteIdentityProvider, { uid }),
    commonFields: ({ uid, name, description, defaultRole, configuration }) => ({
      uid,
      name,
      description,
      defaultRole,
      ...oneofToObject(configuration),
    }),
  },
};

export const mappings: VersionPair<v1Mappings.ExternalGroupRoleMapping, ExternalGroupRoleMapping> = {
  resource: 'external group role mapping',
  async parent(fixture: ApiFixture) {
    const { uid } = await identityProviders.v2.create(fixture.api, await fixture.newOrganization(), 'provider');
    return uid;
  },
  v1: {
    create: (api, parentId, name) =>
      api.call(v1Mappings.ExternalGroupRoleMappings.method.create, {
        parentId,
        mapping: { externalGroupId: name, roleUidp: VIEWER, scope: parentOf(parentId) },
      }),
    find: async (api, id) => {
      const { items } = await api.call(v1Mappings.ExternalGroupRoleMappings.method.list, { uidp: { ids: [id] } });
      if (items[0])
        assert.deepEqual(await api.call(v1Mappings.ExternalGroupRoleMappings.method.get, { uid: id }), items[0]);
      return items;
    },
    remove: (api, id) => api.call(v1Mappings.ExternalGroupRoleMappings.method.delete, { id }),
    commonFields: ({ id: uid, identityProviderUidp, externalGroupId, roleUidp, scope, createdAt }) => ({
      uid,
      provider: identityProviderUidp,
      externalGroupId,
      role: roleUidp,
      scope,
      created: createdAt,
    }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping, {
        parent,
        externalGroupRoleMapping: { externalGroupId: name, roleUid: EDITOR },
      }),
    get: (api, uid) => api.call(ExternalGroupRoleMappingsService.method.getExternalGroupRoleMapping, { uid }),
    find: async (api, uid) =>
      (await api.call(ExternalGroupRoleMappingsService.method.listExternalGroupRoleMappings, { uidp: { ids: [uid] } }))
        .externalGroupRoleMappings,
    remove: (api, uid) => api.call(ExternalGroupRoleMappingsService.method.deleteExternalGroupRoleMapping, { uid }),
    commonFields: ({ uid, identityProviderUid, externalGroupId, roleUid, scope, createTime }) => ({
      uid,
      provider: identityProviderUid,
      externalGroupId,
      role: roleUid,
      scope,
      created: createTime,
    }),
  },
};

export const groupInvites: VersionPair<v1Invites.GroupInvite | v1Invites.StoredGroupInvite, GroupInvite> = {
  resource: 'group invite',
  v1: {
    create: (api, group) =>
      api.call(v1Invites.GroupInvites.method.create, { group, role: VIEWER, ttl: { seconds: 3600n }, singleUse: true }),
    find: async (api, id) => (await api.call(v1Invites.GroupInvites.method.list, { id })).items,
    remove: (api, id) => api.call(v1Invites.GroupInvites.method.delete, { id }),
    commonFields: ({ id: uid, expiration, keyId, role }) => ({
      uid,
      expiration,
      keyId,
      role: role?.id,
      capabilities: role?.capabilities.length,
    }),
  },
  v2: {
    create: (api, parent) =>
      api.call(GroupInvitesService.method.createGroupInvite, {
        parent,
        groupInvite: { roleUid: EDITOR, ttl: { seconds: 60n } },
      }),
    get: (api, uid) => api.call(GroupInvitesService.method.getGroupInvite, { uid }),
    find: async (api, uid) =>
      (await api.call(GroupInvitesService.method.listGroupInvites, { uidp: { ids: [uid] } })).groupInvites,
    remove: (api, uid) => api.call(GroupInvitesService.method.deleteGroupInvite, { uid }),
    commonFields: ({ uid, expirationTime, keyId, role }) => ({
      uid,
      expiration: expirationTime,
      keyId,
      role: role?.uid,
      capabilities: role?.capabilities.length,
    }),
  },
};

const github = { appInstallations: { '17': { installations: [{ installationId: 4n, name: 'wharf' }] } } };

export const accountAssociations: VersionPair<v1Associations.AccountAssociations, AccountAssociation> = {
  resource: 'account association',
  v1: {
    create: (api, group, name) =>
      api.call(v1Associations.GroupAccountAssociations.method.create, {
        group,
        name,
        amazon: { account: '123456789012' },
      }),
    find: async (api, group) => (await api.call(v1Associations.GroupAccountAssociations.method.list, { group })).items,
    update: (api, { group, name }) =>
      api.call(v1Associations.GroupAccountAssociations.method.update, { group, name, github }),
    remove: (api, group) => api.call(v1Associations.GroupAccountAssociations.method.delete, { group }),
    commonFields: ({ group: uid, name, amazon, github }) => ({
      uid,
      name,
      amazon: amazon?.account,
      github: installationsByApp(github),
    }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(AccountAssociationsService.method.createAccountAssociation, {
        parent,
        accountAssociation: { name, github },
      }),
    get: (api, uid) => api.call(AccountAssociationsService.method.getAccountAssociation, { uid }),
    find: async (api, uid) =>
      (await api.call(AccountAssociationsService.method.listAccountAssociations, { uidp: { ids: [uid] } }))
        .accountAssociations,
    update: (api, { uid }) =>
      api.call(AccountAssociationsService.method.updateAccountAssociation, {
        accountAssociation: { uid, amazon: { account: '210987654321' } },
      }),
    remove: (api, uid) => api.call(AccountAssociationsService.method.deleteAccountAssociation, { uid }),
    commonFields: ({ uid, name, amazon, github }) => ({
      uid,
      name,
      amazon: amazon?.account,
      github: installationsByApp(github),
    }),
  },
};

/** The installations of GitHub apps, as [app, installations]. */
const installationsByApp = (
  github:
    | { appInstallations: Record<string, { installations: { installationId: bigint; name: string }[] }> }
    | undefined,
) =>
  Object.entries(github?.appInstallations ?? {}).map(([app, { installations }]) => [
    app,
    installations.map(({ installationId, name }) => `${installationId} ${name}`),
  ]);
