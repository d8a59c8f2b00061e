/** What the public documentation shows of one type of event. Receivers in the field were written from it. */
export interface PublishedEvent {
  readonly type: string;
  /** The paths of `ce-source`; empty if it is the host name of the registry. */
  readonly sources: readonly string[];
  /** The names in the body: nested ones in braces, those of list items in brackets. */
  readonly body: string;
}

/** Type without its prefix `dev.chainguard.`, paths and body. */
const rows: readonly (readonly [type: string, sources: readonly string[], body: string])[] = [
  [
    'registry.pull.v1',
    [],
    '{digest, error{code, message, status}, location, method, remote_address, repo_id, repository, tag, type, user_agent, when}',
  ],
  [
    'registry.push.v1',
    [],
    '{digest, error{code, message, status}, location, remote_address, repo_id, repository, tag, type, user_agent, when}',
  ],
  ['api.auth.registered.v1', ['/auth/v1/register'], '{group, identity}'],
  ['api.events.subscription.created.v1', ['/events/v1/subscriptions'], '{id, sink}'],
  ['api.events.subscription.deleted.v1', ['/events/v1/subscriptions'], '{id}'],
  [
    'api.iam.external_group_role_mappings.created.v1',
    ['/iam/v1/externalGroupRoleMappings', '/iam/v2beta1/externalGroupRoleMappings'],
    '{external_group_id, id, identity_provider_uidp, role_uidp, scope}',
  ],
  [
    'api.iam.external_group_role_mappings.deleted.v1',
    ['/iam/v1/externalGroupRoleMappings', '/iam/v2beta1/externalGroupRoleMappings'],
    '{id}',
  ],
  [
    'api.iam.external_group_role_mappings.deleted.batch.v1',
    ['/iam/v1/externalGroupRoleMappings:batchDelete', '/iam/v2beta1/externalGroupRoleMappings:batchDelete'],
    '{items[{external_group_id, id, identity_provider_uidp, role_uidp, scope}], parent_id}',
  ],
  [
    'api.iam.account_associations.created.v1',
    ['/iam/v1/account_associations', '/iam/v2beta1/accountAssociations'],
    '{amazon{account}, description, google{project_id, project_number}, group, name}',
  ],
  [
    'api.iam.account_associations.updated.v1',
    ['/iam/v1/account_associations', '/iam/v2beta1/accountAssociations'],
    '{amazon{account}, description, google{project_id, project_number}, group, name}',
  ],
  [
    'api.iam.account_associations.deleted.v1',
    ['/iam/v1/account_associations', '/iam/v2beta1/accountAssociations'],
    '{group}',
  ],
  [
    'api.iam.group_invite.created.v1',
    ['/iam/v1/group_invites', '/iam/v2beta1/groupInvites'],
    '{expiration{seconds}, id}',
  ],
  ['api.iam.group_invite.deleted.v1', ['/iam/v1/group_invites', '/iam/v2beta1/groupInvites'], '{id}'],
  ['api.iam.group.created.v1', ['/iam/v1/groups', '/iam/v2beta1/groups'], '{description, id, name}'],
  ['api.iam.group.updated.v1', ['/iam/v1/groups', '/iam/v2beta1/groups'], '{description, id, name}'],
  ['api.iam.group.deleted.v1', ['/iam/v1/groups', '/iam/v2beta1/groups'], '{id}'],
  [
    'api.iam.identity.created.v1',
    ['/iam/v1/identities', '/iam/v2beta1/identities'],
    '{identity{Relationship, description, id, name}, parent_id}',
  ],
  [
    'api.iam.identity.updated.v1',
    ['/iam/v1/identities', '/iam/v2beta1/identities'],
    '{Relationship, description, id, name}',
  ],
  ['api.iam.identity.deleted.v1', ['/iam/v1/identities', '/iam/v2beta1/identities'], '{id}'],
  [
    'api.iam.identity_providers.created.v1',
    ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'],
    '{identity_provider{Configuration, description, id, name}, parent_id}',
  ],
  [
    'api.iam.identity_providers.updated.v1',
    ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'],
    '{Configuration, description, id, name}',
  ],
  ['api.iam.identity_providers.deleted.v1', ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'], '{id}'],
  [
    'api.iam.identity_providers.scim_token.generated.v1',
    ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'],
    '{endpoint_url, etag, expire_time{}, identity_provider_uid}',
  ],
  [
    'api.iam.identity_providers.scim_token.regenerated.v1',
    ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'],
    '{endpoint_url, etag, expire_time{}, identity_provider_uid, previous_token_expire_time{}, requested_overlap{seconds}}',
  ],
  [
    'api.iam.identity_providers.scim_token.revoked.v1',
    ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'],
    '{etag, identity_provider_uid, revoke_time{}}',
  ],
  [
    'api.iam.identity_providers.scim_enabled.updated.v1',
    ['/iam/v1/identityProviders', '/iam/v2beta1/identityProviders'],
    '{enabled, etag, identity_provider_uid}',
  ],
  [
    'api.iam.rolebindings.created.v1',
    ['/iam/v1/rolebindings', '/iam/v2beta1/roleBindings'],
    '{parent, role_binding{id, identity, role}}',
  ],
  [
    'api.iam.rolebindings.created.batch.v1',
    ['/iam/v1/rolebindings/batch', '/iam/v2beta1/roleBindings:batchCreate'],
    '{role_bindings[{id, identity, role}]}',
  ],
  ['api.iam.rolebindings.updated.v1', ['/iam/v1/rolebindings', '/iam/v2beta1/roleBindings'], '{id, identity, role}'],
  ['api.iam.rolebindings.deleted.v1', ['/iam/v1/rolebindings', '/iam/v2beta1/roleBindings'], '{id}'],
  ['api.iam.roles.created.v1', ['/iam/v1/roles', '/iam/v2beta1/roles'], '{description, name, uid}'],
  ['api.iam.roles.updated.v1', ['/iam/v1/roles', '/iam/v2beta1/roles'], '{description, name, uid}'],
  ['api.iam.roles.deleted.v1', ['/iam/v1/roles', '/iam/v2beta1/roles'], '{uid}'],
  ['api.iam.terms.accepted.v1', ['/iam/v1/terms', '/iam/v2beta1/terms'], '{document_ids[], group}'],
  ['api.platform.registry.chart.added.v1', ['/registry/v1/repos'], '{repos[{created, id, name}]}'],
  [
    'api.platform.registry.repo.created.v1',
    ['/registry/v1/repos', '/registry/v2beta1/repos'],
    '{id, name, sync_config{expiration{}, source}}',
  ],
  [
    'api.platform.registry.repo.updated.v1',
    ['/registry/v1/repos', '/registry/v2beta1/repos'],
    '{id, name, sync_config{expiration{}, source}}',
  ],
  ['api.platform.registry.repo.deleted.v1', ['/registry/v1/repos', '/registry/v2beta1/repos'], '{id}'],
  ['api.platform.registry.tag.created.v1', ['/registry/v1/tags', '/registry/v2beta1/tags'], '{digest, id, name}'],
  ['api.platform.registry.tag.updated.v1', ['/registry/v1/tags'], '{digest, id, name}'],
  ['api.platform.registry.tag.deleted.v1', ['/registry/v1/tags', '/registry/v2beta1/tags'], '{id}'],
  [
    'api.policies.bindings.created.v1',
    ['/policies/v1/bindings'],
    '{created_at{}, id, mode, policy, resource_types[], updated_at{}}',
  ],
  [
    'api.policies.bindings.updated.v1',
    ['/policies/v1/bindings'],
    '{created_at{}, id, mode, policy, resource_types[], updated_at{}}',
  ],
  ['api.policies.bindings.deleted.v1', ['/policies/v1/bindings'], '{id}'],
  [
    'api.policies.overrides.created.v1',
    ['/policies/v1/overrides'],
    '{created_at{}, created_by, digest, id, policy_id, reason}',
  ],
  ['api.policies.overrides.deleted.v1', ['/policies/v1/overrides'], '{id}'],
  [
    'api.policies.policies.created.v1',
    ['/policies/v1/policies'],
    '{created_at{}, description, expression, id, name, policy_type, supported_resource_type, updated_at{}}',
  ],
  [
    'api.policies.policies.updated.v1',
    ['/policies/v1/policies'],
    '{created_at{}, description, expression, id, name, policy_type, supported_resource_type, updated_at{}}',
  ],
  ['api.policies.policies.deleted.v1', ['/policies/v1/policies'], '{id}'],
  ['api.iam.identity.metadata.updated.v1', ['/iam/v2beta1/identities:updateIdentityMetadata'], '{name, uid}'],
  [
    'api.platform.registry.overlay_binding.created.v1',
    ['/registry/v2beta1/overlayBindings'],
    '{overlay{config{contents{packages[]}}, name, uid}, repo, tags[], uid}',
  ],
  ['api.platform.registry.overlay_binding.deleted.v1', ['/registry/v2beta1/overlayBindings'], '{uid}'],
  [
    'api.platform.registry.overlay.created.v1',
    ['/registry/v2beta1/overlays'],
    '{config{contents{packages[]}}, name, uid}',
  ],
  ['api.platform.registry.overlay.deleted.v1', ['/registry/v2beta1/overlays'], '{uid}'],
];

export const publishedEvents: readonly PublishedEvent[] = rows.map(([type, sources, body]) => ({
  type: `dev.chainguard.${type}`,
  sources,
  body,
}));

/** The names of a body: `nested` is undefined for a plain value. */
export type BodyNames = ReadonlyMap<string, BodyNames | undefined>;

/** Reads the notation of `PublishedEvent.body`. Lists count as their items. */
export function readBodyNames(text: string): BodyNames {
  const tokens = text.match(/[\w]+|[{}[\]]/g) ?? [];
  let position = 0;
  const readBraces = (): BodyNames => {
    const names = new Map<string, BodyNames | undefined>();
    for (position++; tokens[position] !== '}'; ) {
      const name = tokens[position++] ?? '';
      if (name === '') throw new Error(`${text} has no closing brace`);
      const isList = tokens[position] === '[';
      if (isList) position++;
      names.set(name, tokens[position] === '{' ? readBraces() : undefined);
      if (isList) position++;
    }
    position++;
    return names;
  };
  return readBraces();
}
