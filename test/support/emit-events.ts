import { SubscriptionsService } from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { AccountAssociationsService } from '../../src/contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { ExternalGroupRoleMappingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { Subscriptions } from '../../src/contract/gen/platform/events/v1/subscriptions.platform_pb.js';
import { GroupAccountAssociations } from '../../src/contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import { ExternalGroupRoleMappings } from '../../src/contract/gen/platform/iam/v1/external_group_role_mappings.platform_pb.js';
import { Groups } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { GroupInvites } from '../../src/contract/gen/platform/iam/v1/group_invites.platform_pb.js';
import { Identities } from '../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import { IdentityProviders } from '../../src/contract/gen/platform/iam/v1/identity_providers.platform_pb.js';
import { Roles } from '../../src/contract/gen/platform/iam/v1/role.platform_pb.js';
import { RoleBindings } from '../../src/contract/gen/platform/iam/v1/role_binding.platform_pb.js';
import { Terms } from '../../src/contract/gen/platform/iam/v1/terms.platform_pb.js';
import { Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { builtinRoleUid } from './callers.ts';
import type { Client } from './wires.ts';

/** Where a version of the API emits all its events. */
export interface EmitTarget {
  readonly api: Client;
  /** An organization without an identity provider. */
  readonly organization: string;
  /** A repo with two images. */
  readonly repo: string;
  readonly digest: string;
  readonly otherDigest: string;
  /** The name of what is created, which no other version uses. */
  readonly name: string;
}

export const OIDC_SECRET = 'hush-hush';
const VIEWER = builtinRoleUid('viewer');
const EDITOR = builtinRoleUid('editor');
const ttl = { seconds: 3600n };
const description = 'for an event';
const sink = 'https://sink.invalid/hook';
const configuration = {
  case: 'oidc' as const,
  value: { issuer: 'https://login.example.com', clientId: 'wharf', clientSecret: OIDC_SECRET, groupsClaim: 'groups' },
};
const relationship = {
  case: 'claimMatch' as const,
  value: {
    iss: { case: 'issuer' as const, value: 'https://issuer.example.com' },
    sub: { case: 'subject' as const, value: 'robot' },
  },
};
const clouds = { amazon: { account: '123456789012' }, google: { projectId: 'wharf-project', projectNumber: '12345' } };
const documentIds = ['sfdpa.v1'];

/** Calls every method of v2 that emits an event to customers. With a client of v2beta1, those of v2beta1. */
export async function emitV2Events({ api, organization, repo, digest, name }: EmitTarget): Promise<void> {
  const groups = GroupsService.method;
  const { uid: parent } = await api.call(groups.createGroup, { parent: organization, group: { name, description } });
  await api.call(groups.updateGroup, { group: { uid: parent, description: 'new' } });
  const { uid: child } = await api.call(groups.createGroup, { parent, group: { name } });
  await api.call(groups.deleteGroup, { uid: child });

  const identities = IdentitiesService.method;
  const identity = await api.call(identities.createIdentity, { parent, identity: { name, description, relationship } });
  await api.call(identities.updateIdentity, { identity: { uid: identity.uid, description: 'new' } });

  const roles = RolesService.method;
  const role = await api.call(roles.createRole, { parent, role: { name, description, capabilities: [101] } });
  await api.call(roles.updateRole, { role: { uid: role.uid, description: 'new' } });
  await api.call(roles.deleteRole, { uid: role.uid });

  const bindings = RoleBindingsService.method;
  const roleBinding = { identityUid: identity.uid, roleUid: VIEWER };
  const binding = await api.call(bindings.createRoleBinding, { parent, roleBinding });
  await api.call(bindings.updateRoleBinding, { roleBinding: { uid: binding.uid, roleUid: EDITOR } });
  await api.call(bindings.deleteRoleBinding, { uid: binding.uid });
  await api.call(bindings.batchCreateRoleBindings, { parent, requests: [{ parent, roleBinding }] });
  await api.call(identities.deleteIdentity, { uid: identity.uid });

  const providers = IdentityProvidersService.method;
  const identityProvider = { name, description, defaultRole: VIEWER, configuration };
  const provider = await api.call(providers.createIdentityProvider, { parent: organization, identityProvider });
  await api.call(providers.updateIdentityProvider, { identityProvider: { uid: provider.uid, description: 'new' } });
  const identityProviderUid = provider.uid;
  let { etag } = await api.call(providers.generateScimToken, { identityProviderUid });
  ({ etag } = await api.call(providers.regenerateScimToken, { identityProviderUid, etag }));
  await api.call(providers.setScimEnabled, { identityProviderUid, etag, enabled: false });
  await api.call(providers.revokeScimToken, { identityProviderUid });

  const mappings = ExternalGroupRoleMappingsService.method;
  const map = (externalGroupId: string) =>
    api.call(mappings.createExternalGroupRoleMapping, {
      parent: provider.uid,
      externalGroupRoleMapping: { externalGroupId, roleUid: VIEWER, scope: parent },
    });
  const [first, second] = [await map('admins'), await map('users')];
  await api.call(mappings.deleteExternalGroupRoleMapping, { uid: first.uid });
  await api.call(mappings.batchDeleteExternalGroupRoleMappings, { parent: provider.uid, names: [second.uid] });
  await api.call(providers.deleteIdentityProvider, { uid: provider.uid });

  const associations = AccountAssociationsService.method;
  const accountAssociation = { name, description, ...clouds };
  await api.call(associations.createAccountAssociation, { parent, accountAssociation });
  await api.call(associations.updateAccountAssociation, { accountAssociation: { uid: parent, description: 'new' } });
  await api.call(associations.deleteAccountAssociation, { uid: parent });

  const invites = GroupInvitesService.method;
  const invite = await api.call(invites.createGroupInvite, { parent, groupInvite: { roleUid: VIEWER, ttl } });
  await api.call(invites.deleteGroupInvite, { uid: invite.uid });
  await api.call(TermsService.method.acceptTerms, { group: parent, documentIds });

  const subscriptions = SubscriptionsService.method;
  const subscription = await api.call(subscriptions.createSubscription, { parent, subscription: { sink } });
  await api.call(subscriptions.deleteSubscription, { uid: subscription.uid });

  const repos = ReposService.method;
  const created = await api.call(repos.createRepo, { parent, repo: { name, syncConfig: { source: repo } } });
  await api.call(repos.updateRepo, { repo: { uid: created.uid, description: 'new' } });
  await api.call(repos.updateRepoReadme, { repoReadme: { uid: created.uid, content: '# emitted' } });
  await api.call(repos.deleteRepo, { uid: created.uid });
  const tag = await api.call(TagsService.method.createTag, { parent: repo, tag: { name, digest } });
  await api.call(TagsService.method.deleteTag, { uid: tag.uid });
}

/** Calls every method of v1 that emits an event to customers, except for Register, which only people can call. */
export async function emitV1Events({ api, organization, repo, digest, otherDigest, name }: EmitTarget): Promise<void> {
  const groups = Groups.method;
  const { id: parent } = await api.call(groups.create, { parent: organization, group: { name, description } });
  await api.call(groups.update, { id: parent, name, description: 'new' });
  const { id: child } = await api.call(groups.create, { parent, group: { name } });
  await api.call(groups.delete, { id: child });

  const identities = Identities.method;
  const identity = await api.call(identities.create, {
    parentId: parent,
    identity: { name, description, relationship },
  });
  await api.call(identities.update, { id: identity.id, name, description: 'new', relationship });

  const roles = Roles.method;
  const capabilities = ['groups.list'];
  const role = await api.call(roles.create, { parentId: parent, role: { name, description, capabilities } });
  await api.call(roles.update, { id: role.id, name, description: 'new', capabilities });
  await api.call(roles.delete, { id: role.id });

  const bindings = RoleBindings.method;
  const roleBinding = { identity: identity.id, role: VIEWER };
  const binding = await api.call(bindings.create, { parent, roleBinding });
  await api.call(bindings.update, { id: binding.id, identity: identity.id, role: EDITOR });
  await api.call(bindings.delete, { id: binding.id });
  await api.call(bindings.createBatch, { parent, roleBindings: [roleBinding] });
  await api.call(identities.delete, { id: identity.id });

  const providers = IdentityProviders.method;
  const identityProvider = { name, description, defaultRole: VIEWER, configuration };
  const provider = await api.call(providers.create, { parentId: organization, identityProvider });
  await api.call(providers.update, { ...identityProvider, id: provider.id, description: 'new' });
  const identityProviderId = provider.id;
  let { etag } = await api.call(providers.generateScimToken, { identityProviderId });
  ({ etag } = await api.call(providers.regenerateScimToken, { identityProviderId, etag }));
  await api.call(providers.setScimEnabled, { identityProviderId, etag, enabled: false });
  await api.call(providers.revokeScimToken, { identityProviderId });

  const mappings = ExternalGroupRoleMappings.method;
  const map = (externalGroupId: string) =>
    api.call(mappings.create, {
      parentId: provider.id,
      mapping: { externalGroupId, roleUidp: VIEWER, scope: parent },
    });
  const [first, second] = [await map('admins'), await map('users')];
  await api.call(mappings.delete, { id: first.id });
  await api.call(mappings.batchDelete, { parentId: provider.id, ids: [second.id] });
  await api.call(providers.delete, { id: provider.id });

  const associations = GroupAccountAssociations.method;
  await api.call(associations.create, { group: parent, name, description, ...clouds });
  await api.call(associations.update, { group: parent, name, description: 'new', ...clouds });
  await api.call(associations.delete, { group: parent });

  const invite = await api.call(GroupInvites.method.create, { group: parent, role: VIEWER, ttl });
  await api.call(GroupInvites.method.delete, { id: invite.id });
  await api.call(Terms.method.acceptTerms, { group: parent, documentIds });

  const subscription = await api.call(Subscriptions.method.create, { parentId: parent, subscription: { sink } });
  await api.call(Subscriptions.method.delete, { id: subscription.id });

  const registry = Registry.method;
  const created = await api.call(registry.createRepo, {
    parentId: parent,
    repo: { name, syncConfig: { source: repo } },
  });
  await api.call(registry.updateRepo, { id: created.id, name, syncConfig: { source: repo } });
  await api.call(registry.deleteRepo, { id: created.id });
  const tag = await api.call(registry.createTag, { repoId: repo, tag: { name, digest } });
  await api.call(registry.updateTag, { id: tag.id, name, digest: otherDigest });
  await api.call(registry.deleteTag, { id: tag.id });
}
